package papers

import (
	"context"
	"fmt"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/consumer"
	"ndnpop/sim"
)

// CdnSim is cdn-sim: the experiments of "NDN for CDN workflows" in virtual time.
type CdnSim struct{ tiny bool }

// Name implements cdnbench.Scenario.
func (CdnSim) Name() string { return "cdn-sim" }

// About implements cdnbench.Scenario.
func (CdnSim) About() string {
	return "what a delivery network of NDN caches gains: repair, first byte, cache use, ranges, failover, choice of path"
}

// cdnPart is one of the experiments: it fills the metrics of one run.
type cdnPart struct {
	arm     string
	metrics []string
	run     func(s CdnSim, quick bool, seed uint64, m map[string]float64, k *cdnKept) error
}

// cdnKept is what the first runs keep for plots.
type cdnKept struct {
	goneX, goneY           []float64 // arrivals around the kill
	silentX, silentY       []float64 // and around the crash
	shareT, share1, share2 []float64
}

func cdnParts() []cdnPart {
	return []cdnPart{
		{"goodput", []string{"lossless_s", "lossy_s", "lossy_bbr_s", "repaired_s", "link_s"}, CdnSim.goodput},
		{"loss", []string{"lost_on_access", "repaired_from_edge", "repaired_share", "repair_ms", "far_repair_ms"}, CdnSim.loss},
		{"first byte", []string{"cold_ms", "cold_to_path", "warm_ms", "warm_to_path", "warm_discovered_ms"}, CdnSim.firstByte},
		{"cache use", []string{"held_after_1_mb", "held_after_2_mb", "origin_mb"}, CdnSim.cacheUse},
		{"partial", []string{"1mb_to_missing", "5mb_to_missing", "20mb_to_missing", "20mb_again_s"}, CdnSim.partial},
		{"failover", []string{"killed_gap_ms", "killed_repeats", "crashed_gap_ms", "crashed_repeats"}, CdnSim.failover},
		{"path switch", []string{"share_after_2s", "to_90_percent_s", "best_route_share"}, CdnSim.pathSwitch},
	}
}

// Run implements cdnbench.Scenario.
func (s CdnSim) Run(ctx context.Context, o cdnbench.Options) (*cdnbench.Result, error) {
	r, runs := begin(s.Name(), o, 5, 1)
	var all []*values
	var jobs []job
	kept := make([]cdnKept, runs)
	for _, p := range cdnParts() {
		v := &values{p.arm, make([]map[string]float64, runs)}
		all = append(all, v)
		for run := range runs {
			v.metrics[run] = map[string]float64{}
			jobs = append(jobs, job{p.arm, run, func(seed uint64) error {
				return p.run(s, o.Quick, seed, v.metrics[run], &kept[run])
			}})
		}
	}
	if err := runJobs(ctx, o, jobs); err != nil {
		return nil, err
	}
	for i, p := range cdnParts() {
		collect(r, all[i:i+1], p.metrics...)
	}
	f := cdnFigures{r}
	f.text()
	f.plots(kept)
	f.expect()
	return r, nil
}

// mb is a size in megabytes, smaller in a tiny run.
func (s CdnSim) mb(n int64) int64 {
	if s.tiny {
		return n * 1e6 / 50
	}
	return n * 1e6
}

func (s CdnSim) goodput(_ bool, seed uint64, m map[string]float64, _ *cdnKept) error {
	size := s.mb(20)
	for _, c := range []struct {
		what, controller string
		lossy, repaired  bool
	}{{"lossless_s", "cubic", false, false}, {"lossy_s", "cubic", true, false}, {"lossy_bbr_s", "bbr", true, false}, {"repaired_s", "cubic", true, true}} {
		l := newCDN(seed, cdnConfig{strategy: "failover", edgeCache: cdnCapacity, lossy: c.lossy, repaired: c.repaired, size: size})
		f, err := l.fetch(cdnName, sim.FetchConfig{Controller: c.controller})
		if err != nil {
			return err
		}
		m[c.what] = f.Elapsed().Seconds()
	}
	m["link_s"] = float64(size) * 8 / cdnRate
	return nil
}

// loss counts what is lost on the way from the edge to the client, and what
// the edge answers again. One segment is one frame here.
func (s CdnSim) loss(quick bool, seed uint64, m map[string]float64, _ *cdnKept) error {
	size := s.mb(60)
	if quick {
		size = s.mb(30)
	}
	l := newCDN(seed, cdnConfig{strategy: "failover", edgeCache: cdnCapacity, lossy: true, payload: 1300, size: size})
	log := newRepairs()
	if _, err := l.fetch(cdnName, sim.FetchConfig{Tracer: log}); err != nil {
		return err
	}
	lost := float64(l.access.From(l.edge).Counters().LossDrops)
	// What comes from the edge's cache has the tag that all of it has when it
	// is fetched again.
	again := newRepairs()
	if _, err := l.fetch(cdnName+"/v=1", sim.FetchConfig{Tracer: again}); err != nil {
		return err
	}
	near := log.by(again.last)
	m["far_repair_ms"] = median(log.but(again.last))
	m["lost_on_access"], m["repaired_from_edge"] = lost, float64(len(near))
	m["repaired_share"], m["repair_ms"] = float64(len(near))/lost, median(near)
	return nil
}

func (s CdnSim) firstByte(_ bool, seed uint64, m map[string]float64, _ *cdnKept) error {
	l := newCDN(seed, cdnConfig{strategy: "failover", edgeCache: cdnCapacity, size: s.mb(1)})
	ttfb := func(name string) (float64, error) {
		f, err := l.fetch(name, sim.FetchConfig{})
		if err != nil {
			return 0, err
		}
		st := f.Stats()
		return st.FirstByte.Sub(st.Started).Seconds() * 1e3, nil
	}
	var err error
	if m["cold_ms"], err = ttfb(cdnName); err != nil {
		return err
	}
	// The start of the content came with the metadata, so that the cache lacks
	// the first segment until somebody asks for it by the version.
	for range 2 {
		if m["warm_ms"], err = ttfb(cdnName + "/v=1"); err != nil {
			return err
		}
	}
	// The metadata is fresh for 10 ms only: who asks for the newest version
	// asks the origin.
	if err = l.net.Run(l.net.Now() + time.Second); err != nil {
		return err
	}
	m["warm_discovered_ms"], err = ttfb(cdnName)
	m["cold_to_path"] = m["cold_ms"] / float64((accessRTT+metroRTT+originRTT)/ms)
	m["warm_to_path"] = m["warm_ms"] / float64(accessRTT/ms)
	return err
}

// cacheUse pulls an object through one intermediate, changes to the other
// when a tenth of it has been asked for, and pulls it again.
func (s CdnSim) cacheUse(_ bool, seed uint64, m map[string]float64, _ *cdnKept) error {
	size := s.mb(100)
	l := newCDN(seed, cdnConfig{strategy: "failover", size: size})
	l.steer(0)
	l.net.Every(ms/10, func() bool {
		mid := l.mids[0].Shard()
		if asked := mid.CSInfo().Packets + mid.Counters().PitEntries; int64(asked) < size/10/cdnPayload {
			return true
		}
		l.steer(1)
		return false
	})
	if _, err := l.fetch(cdnName, sim.FetchConfig{}); err != nil {
		return err
	}
	scale := 100e6 / float64(size) // of a tiny run
	m["held_after_1_mb"] = l.held() * scale
	if _, err := l.fetch(cdnName, sim.FetchConfig{}); err != nil {
		return err
	}
	m["held_after_2_mb"] = l.held() * scale
	sent := 0.0
	for _, p := range l.net.Producers() {
		sent += float64(p.Counters().Segments)
	}
	m["origin_mb"] = sent * cdnPayload / 1e6 * scale
	return nil
}

// partial fetches the first n MB and then twice as much: only the second half
// is missing.
func (s CdnSim) partial(_ bool, seed uint64, m map[string]float64, _ *cdnKept) error {
	for _, n := range []int64{1, 5, 20} {
		l := newCDN(seed, cdnConfig{strategy: "failover", edgeCache: cdnCapacity, size: s.mb(100)})
		upTo := func(bytes int64) sim.FetchConfig {
			return sim.FetchConfig{Consumer: func(c *consumer.Config) {
				c.Range = consumer.Range{Kind: consumer.RangeBytes, To: uint64(bytes) - 1}
			}}
		}
		if _, err := l.fetch(cdnName, upTo(s.mb(n))); err != nil {
			return err
		}
		before := l.came(0).OutPackets + l.came(1).OutPackets
		f, err := l.fetch(cdnName, upTo(2*s.mb(n)))
		if err != nil {
			return err
		}
		came := l.came(0).OutPackets + l.came(1).OutPackets - before
		missing := (2*s.mb(n)+cdnPayload-1)/cdnPayload - (s.mb(n)+cdnPayload-1)/cdnPayload
		m[fmt.Sprintf("%dmb_to_missing", n)] = float64(came) / float64(missing)
		m["20mb_again_s"] = f.Elapsed().Seconds()
	}
	return nil
}

// failover ends the intermediate that serves, once by killing its process and
// once by taking its host away without a word.
func (s CdnSim) failover(_ bool, seed uint64, m map[string]float64, k *cdnKept) error {
	at := 3 * time.Second
	if s.tiny {
		at = 300 * ms
	}
	for _, silent := range []bool{false, true} {
		l := newCDN(seed, cdnConfig{strategy: "failover", edgeCache: cdnCapacity, marks: true, size: s.mb(100)})
		log := &arrivalLog{}
		l.net.At(at, func() {
			serving := 0
			if l.came(1).OutPackets > l.came(0).OutPackets {
				serving = 1
			}
			if silent {
				l.mids[serving].Crash()
			} else {
				l.mids[serving].Kill()
			}
		})
		if _, err := l.fetch(cdnName, sim.FetchConfig{Tracer: log}); err != nil {
			return err
		}
		gap, again := 1e3*log.gap(at), log.losses(at)
		x, y := log.curve(at.Seconds()-0.05, at.Seconds()+0.35)
		if silent {
			m["crashed_gap_ms"], m["crashed_repeats"] = gap, again
			k.silentX, k.silentY = x, y
		} else {
			m["killed_gap_ms"], m["killed_repeats"] = gap, again
			k.goneX, k.goneY = x, y
		}
	}
	return nil
}

// pathSwitch worsens the path that serves: its weight of 100 points per ms and
// 100 per percent of loss grows by 10,100.
func (s CdnSim) pathSwitch(_ bool, seed uint64, m map[string]float64, k *cdnKept) error {
	at, end := 3*time.Second, 10*time.Second
	if s.tiny {
		at, end = 300*ms, 2500*ms
	}
	for _, strategy := range []string{"best-path", "best-route"} {
		l := newCDN(seed, cdnConfig{strategy: strategy, edgeCache: cdnCapacity, size: 1 << 40})
		worse := 0
		l.net.At(at, func() {
			if l.came(1).OutPackets > l.came(0).OutPackets {
				worse = 1
			}
			p := l.toMid[worse].AB.Params()
			p.Delay, p.Loss = p.Delay+50*ms, 0.01
			l.net.At(l.net.Now(), func() {
				if err := l.toMid[worse].Set(p); err != nil {
					m["failed"] = 1
				}
			})
		})
		probes := [2]*sim.LinkProbe{}
		for i := range probes {
			probes[i] = l.toMid[i].From(l.mids[i]).Probe(100 * ms)
		}
		l.net.AddFetch(l.client, sim.FetchConfig{Name: cdnName, Controller: "cubic"})
		if err := l.net.Run(end); err != nil {
			return err
		}
		bad, good := probes[worse].Samples(), probes[1-worse].Samples()
		var after, total float64
		reached := inf
		for i := range bad {
			if bad[i].At > at+2*time.Second {
				after, total = after+good[i].Rate, total+good[i].Rate+bad[i].Rate
			}
			if bad[i].At > at && good[i].Rate > 0 && good[i].Rate >= 9*bad[i].Rate {
				reached = min(reached, (bad[i].At - at).Seconds())
			}
		}
		if strategy == "best-route" {
			m["best_route_share"] = after / total
			continue
		}
		m["share_after_2s"], m["to_90_percent_s"] = after/total, reached
		for i := range bad {
			k.shareT = append(k.shareT, bad[i].At.Seconds())
			k.share1 = append(k.share1, bad[i].Rate/mbit)
			k.share2 = append(k.share2, good[i].Rate/mbit)
		}
	}
	return nil
}

package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ndnpop/mgmt"
)

// statusJSON is the state of a forwarder as --json prints it.
type statusJSON struct {
	Version      string     `json:"version"`
	Started      time.Time  `json:"started"`
	UptimeS      float64    `json:"uptime_s"`
	FibEntries   uint64     `json:"fib_entries"`
	PitEntries   uint64     `json:"pit_entries"`
	Measurements uint64     `json:"measurements_entries"`
	In           packetsOut `json:"in"`
	Out          packetsOut `json:"out"`
	Satisfied    uint64     `json:"satisfied_interests"`
	Unsatisfied  uint64     `json:"unsatisfied_interests"`
	CS           csJSON     `json:"cs"`
	Listeners    []string   `json:"listeners"`
	// Shards is what only this project's forwarders tell.
	Shards []shardJSON `json:"shards,omitempty"`
}

// shardJSON is one shard of the forwarding tables.
type shardJSON struct {
	BusyS      float64 `json:"busy_s"` // since the start
	Load       float64 `json:"load"`   // of late: the share of one processor
	PitEntries uint64  `json:"pit_entries"`
	CSHits     uint64  `json:"cs_hits"`
	CSMisses   uint64  `json:"cs_misses"`
	HitRatio   float64 `json:"cs_hit_ratio"`
	Packets    uint64  `json:"packets"`
	Batches    uint64  `json:"batches"`
}

func shardsOut(shards []mgmt.ShardStatus) (out []shardJSON) {
	for _, s := range shards {
		out = append(out, shardJSON{
			BusyS: float64(s.Busy) / 1e6, Load: float64(s.Load) / 1e4, PitEntries: s.Pit,
			CSHits: s.CsHits, CSMisses: s.CsMisses, HitRatio: ratio(s.CsHits, s.CsMisses),
			Packets: s.Packets, Batches: s.Batches,
		})
	}
	return out
}

type packetsOut struct {
	Interests uint64 `json:"interests"`
	Data      uint64 `json:"data"`
	Nacks     uint64 `json:"nacks"`
}

func newCtlStatusCmd(f *ctlFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the state of the forwarder",
		Example: "  ndnpop ctl status",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.with(c, func(s *session) error {
				st, err := readDataset(s, "status", "general", nil, mgmt.ParseForwarderStatus)
				if err != nil {
					return err
				}
				cs, err := readDataset(s, "cs", "info", nil, mgmt.ParseCsInfo)
				if err != nil {
					return err
				}
				out := statusJSON{
					Version: st.Version, Started: time.UnixMilli(int64(min(st.Started, 1<<52))).UTC(),
					UptimeS:    float64(st.Now-min(st.Started, st.Now)) / 1e3,
					FibEntries: st.Fib, PitEntries: st.Pit, Measurements: st.Measurements,
					In:        packetsOut{st.InInterests, st.InData, st.InNacks},
					Out:       packetsOut{st.OutInterests, st.OutData, st.OutNacks},
					Satisfied: st.SatisfiedInterests, Unsatisfied: st.UnsatisfiedInterests,
					CS: csOut(&cs), Listeners: []string{}, Shards: shardsOut(st.Shards),
				}
				// ndnd has no channels.
				if ch, err := readDataset(s, "faces", "channels", nil, mgmt.ParseChannelStatuses); err == nil {
					for _, l := range ch {
						out.Listeners = append(out.Listeners, l.LocalURI)
					}
				}
				return s.print(out, func(w *tabwriter.Writer) { statusTable(w, &out) })
			})
		},
	}
}

func statusTable(w *tabwriter.Writer, s *statusJSON) {
	fmt.Fprintf(w, "version\t%s\n", safe(s.Version))
	fmt.Fprintf(w, "running for\t%s, since %s\n", shortDuration(uint64(s.UptimeS*1e3)), s.Started.Local().Format(time.DateTime))
	for i, l := range s.Listeners {
		label := ""
		if i == 0 {
			label = "listening"
		}
		fmt.Fprintf(w, "%s\t%s\n", label, safe(l))
	}
	fmt.Fprintf(w, "tables\tFIB %d, PIT %d, measurements %d\n", s.FibEntries, s.PitEntries, s.Measurements)
	fmt.Fprintf(w, "in\t%d Interests, %d Data, %d Nacks\n", s.In.Interests, s.In.Data, s.In.Nacks)
	fmt.Fprintf(w, "out\t%d Interests, %d Data, %d Nacks\n", s.Out.Interests, s.Out.Data, s.Out.Nacks)
	fmt.Fprintf(w, "Interests\t%d satisfied, %d not\n", s.Satisfied, s.Unsatisfied)
	used := fmt.Sprintf("%d packets of %d", s.CS.Entries, s.CS.CapacityPackets)
	if s.CS.UsedBytes != nil && s.CS.CapacityBytes != nil {
		used = fmt.Sprintf("%s, %s of %s", count(s.CS.Entries, "packet"), bytesText(*s.CS.UsedBytes), bytesText(*s.CS.CapacityBytes))
	}
	if s.CS.DataBytes != nil && s.CS.UsedBytes != nil && s.CS.CapacityBytes != nil {
		// Memory is taken in pages, so the one says little about the other.
		used = fmt.Sprintf("%s, %s, in %s of %s of memory", count(s.CS.Entries, "packet"),
			bytesText(*s.CS.DataBytes), bytesText(*s.CS.UsedBytes), bytesText(*s.CS.CapacityBytes))
	}
	fmt.Fprintf(w, "content store\t%s; hits %d of %d (%.1f %%)\n", used, s.CS.Hits, s.CS.Hits+s.CS.Misses, 100*s.CS.HitRatio)
	for i, sh := range s.Shards {
		fmt.Fprintf(w, "shard %d\tload %.1f %% of a processor, PIT %d, %s, content store hits %d of %d (%.1f %%)\n",
			i, 100*sh.Load, sh.PitEntries, count(sh.Packets, "packet"), sh.CSHits, sh.CSHits+sh.CSMisses, 100*sh.HitRatio)
	}
}

// eventJSON is a face event as --json prints it, one per line.
type eventJSON struct {
	Time        time.Time `json:"time"`
	Event       string    `json:"event"`
	Face        uint64    `json:"face"`
	Remote      string    `json:"remote"`
	Local       string    `json:"local"`
	Scope       string    `json:"scope"`
	Persistency string    `json:"persistency"`
}

func newCtlEventsCmd(f *ctlFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "events",
		Short: "Follow faces as they come and go",
		Long:  "Prints a line for every face that is created, destroyed, comes up or goes down,\nuntil stopped. With --json each line is an object.",
		Example: `  ndnpop ctl events
  ndnpop ctl events --json | jq .remote`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.with(c, func(s *session) error {
				err := s.c.Events(s.ctx, func(e mgmt.FaceEvent) error { return s.event(time.Now(), &e) }, func(n uint64) {
					fmt.Fprintf(s.e.stderr, "%d events were missed: more came at once than the forwarder keeps\n", n)
				})
				if s.ctx.Err() != nil {
					return stopped(s.ctx)
				}
				return err
			})
		},
	}
}

func (s *session) event(at time.Time, e *mgmt.FaceEvent) error {
	kind := nameOf([]string{"unknown", "created", "destroyed", "up", "down"}, e.Kind)
	if s.json {
		return json.NewEncoder(s.e.stdout).Encode(eventJSON{
			at.UTC(), kind, e.FaceID, e.URI, e.LocalURI, nameOf(scopes, e.Scope), nameOf(persistencies, e.Persistency),
		})
	}
	_, err := fmt.Fprintf(s.e.stdout, "%s  %-9s  face %d  %s  local %s  %s\n", at.Format(time.TimeOnly), kind,
		e.FaceID, safe(e.URI), safe(e.LocalURI), nameOf(persistencies, e.Persistency))
	return err
}

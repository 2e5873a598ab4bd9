package daemon

import (
	"runtime"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"ndnpop/face"
	"ndnpop/fw"
	"ndnpop/fw/run"
)

// metrics reads the forwarder's counters when Prometheus asks
// (prometheus.Collector). Faces made on demand are added up: their number is up
// to strangers.
type metrics struct {
	d      *Daemon
	pitMax int
}

func newMetrics(d *Daemon) *metrics { return &metrics{d, d.cfg.PIT.MaxEntries} }

// Describe implements prometheus.Collector. What is collected depends on the
// faces, so the collector is an unchecked one.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	w := &sink{ch}
	w.gauge("build_info", "1; the labels tell what runs.", 1, "version", m.d.opts.Version, "goversion", runtime.Version())
	m.shard(w, m.d.fwd.Counters())
	for i, l := range m.d.fwd.Loads() {
		id := []string{"shard", strconv.Itoa(i)}
		w.value("shard_busy_seconds_total", "Time that the shard worked: its rate is the share of one processor.", l.Busy.Seconds(), id...)
		w.counter("shard_packets_total", "Network packets that the shard received.", l.Packets, id...)
		w.counter("shard_batches_total", "Batches in which it received them.", l.Batches, id...)
	}
	w.gauge("pit_capacity_entries", "Pending Interests that there may be.", float64(m.pitMax))
	cs := m.d.fwd.CS()
	w.gauge("cs_capacity_bytes", "Memory that the content store may occupy.", float64(cs.CapacityBytes))
	w.gauge("cs_used_bytes", "Memory that the content store occupies.", float64(cs.UsedBytes))
	w.gauge("cs_data_bytes", "Size of the Data in the content store.", float64(cs.DataBytes))
	w.gauge("cs_entries", "Data in the content store.", float64(cs.Entries))
	w.counter("cs_hits_total", "Interests answered from the content store.", cs.Hits)
	w.counter("cs_misses_total", "Interests not answered from the content store.", cs.Misses)
	w.counter("cs_inserts_total", "Data put into the content store.", cs.Inserts)
	w.counter("cs_evictions_total", "Data that left the content store for others.", cs.Evicted)
	w.gauge("rib_routes", "Routes in the RIB.", float64(m.d.fwd.RouteCount()))
	w.counter("faces_refused_total", "Peers turned away because there were too many faces.", m.d.fwd.RefusedFaces())
	if m.d.mgmt != nil {
		c := m.d.mgmt.Counters()
		w.counter("mgmt_commands_total", "Management commands, by result.", c.Commands, "result", "done")
		w.counter("mgmt_commands_total", "Management commands, by result.", c.Failed, "result", "failed")
		w.counter("mgmt_commands_total", "Management commands, by result.", c.Refused, "result", "refused")
		w.counter("mgmt_keys_total", "Keys of trust anchors whose certificates were fetched, by result.", c.KeysFound, "result", "believed")
		w.counter("mgmt_keys_total", "Keys of trust anchors whose certificates were fetched, by result.", c.KeysMissing, "result", "refused")
		w.counter("mgmt_datasets_total", "Datasets made for those who asked.", c.Datasets)
		w.counter("mgmt_unsent_total", "Answers of management that found its queue full or were too large.", c.Unsent)
		w.counter("mgmt_events_total", "Notifications of faces that were published.", c.FaceEvents)
		w.counter("mgmt_events_lost_total", "Notifications that were not, because too many came at once.", c.EventsLost)
	}
	for _, l := range m.d.udp {
		c := l.Counters()
		for _, k := range []struct {
			reason string
			v      uint64
		}{
			{"foreign", c.Foreign}, {"oversize", c.Oversize}, {"face_refused", c.Refused}, {"too_many_peers", c.OverLimit},
		} {
			w.counter("udp_datagrams_refused_total", "Datagrams that no face took, by reason.", k.v, "listener", l.URI(), "reason", k.reason)
		}
	}
	faces, retired := m.d.fwd.FacesAndRetired()
	m.faces(w, faces, retired)
}

func (m *metrics) shard(w *sink, c fw.Counters) {
	for _, k := range []struct {
		dir, kind string
		v         uint64
	}{
		{"in", "interest", c.InInterests}, {"in", "data", c.InData}, {"in", "nack", c.InNacks},
		{"out", "interest", c.OutInterests}, {"out", "data", c.OutData}, {"out", "nack", c.OutNacks},
	} {
		w.counter("packets_total", "Network packets that the shard received and sent.", k.v, "direction", k.dir, "kind", k.kind)
	}
	w.counter("interests_satisfied_total", "Pending Interests that got Data.", c.Satisfied)
	w.counter("interests_expired_total", "Pending Interests that got none in their time.", c.Expired)
	w.counter("interests_aggregated_total", "Interests that joined a pending one.", c.Aggregated)
	w.counter("interests_suppressed_total", "Retransmissions that came too soon to be forwarded.", c.Suppressed)
	w.counter("interests_looped_total", "Interests whose Nonce had come before.", c.Looped)
	w.counter("data_unsolicited_total", "Data that nobody had asked for.", c.Unsolicited)
	w.counter("data_hint_mismatches_total", "Data that came under another forwarding hint than a pending Interest of its name.", c.HintMismatch)
	w.counter("pit_tokens_stale_total", "PIT tokens that were not ours, or too old.", c.StaleTokens)
	w.counter("interests_given_up_total", "Interests that the link did not get across.", c.GaveUp)
	w.counter("dead_nonces_lost_total", "Nonces forgotten early because the list was full.", c.DeadNoncesLost)
	for _, k := range []struct {
		reason string
		v      uint64
	}{
		{"bad_face", c.BadFace}, {"bad_size", c.BadSize}, {"bad_name", c.BadName}, {"bad_params", c.BadParams},
		{"bad_scope", c.BadScope}, {"hop_limit", c.HopLimit}, {"next_hop_face", c.NextHopFace},
		{"unknown_nack", c.UnknownNacks}, {"nack_multi_access", c.NackMultiAcc}, {"pit_full", c.PitFull}, {"pit_face_full", c.PitFace},
		{"pit_variants", c.PitVariants}, {"in_records", c.InRecordsFull}, {"timers", c.TimersFull},
		{"face_queue", c.OutRefused},
	} {
		w.counter("packets_dropped_total", "Network packets that the shard dropped, by reason.", k.v, "reason", k.reason)
	}
	w.gauge("pit_entries", "Pending Interests.", float64(c.PitEntries))
	w.gauge("fib_entries", "Prefixes in the FIB.", float64(c.FibEntries))
	w.gauge("fib_next_hops", "Next hops in the FIB.", float64(c.Routes))
	w.gauge("dead_nonces", "Nonces in the dead nonce list.", float64(c.DeadNonces))
	w.gauge("measurements", "What strategies remember about prefixes, in entries.", float64(c.Measurements))
}

// faces tells of each face that is configured or was created by command, and
// of the others by scheme, with what those counted that are gone.
func (m *metrics) faces(w *sink, faces []run.FaceInfo, retired map[string]run.FaceCounters) {
	type class struct{ scheme, persistency string }
	counts := map[class]int{}
	others := map[string]run.FaceCounters{}
	for s, c := range retired {
		others[s] = c
	}
	for _, i := range faces {
		if i.ID < run.FirstFaceID {
			continue
		}
		scheme, _, _ := strings.Cut(i.RemoteURI, "://")
		counts[class{scheme, persistencyName(i.Persistency)}]++
		if i.Persistency == face.PersistencyOnDemand {
			others[scheme] = run.Sum(others[scheme], i.Counters)
			continue
		}
		id := []string{"face", strconv.FormatUint(uint64(i.ID), 10), "name", i.Name, "remote", i.RemoteURI}
		up := 0.0
		if i.Up {
			up = 1
		}
		w.gauge("face_up", "1 if the face is up.", up, id...)
		w.gauge("face_mtu_bytes", "Largest frame of the face.", float64(i.MTU), id...)
		w.gauge("face_queue_bytes", "Bytes waiting to be sent.", float64(i.Counters.QueueBytes), id...)
		m.traffic(w, "face_", &i.Counters, id)
	}
	for s, c := range others {
		m.traffic(w, "other_faces_", &c, []string{"scheme", s})
	}
	for c, n := range counts {
		w.gauge("faces", "Faces.", float64(n), "scheme", c.scheme, "persistency", c.persistency)
	}
}

// traffic tells the counters of one face or of several.
func (m *metrics) traffic(w *sink, prefix string, c *run.FaceCounters, id []string) {
	with := func(more ...string) []string { return append(more, id...) }
	w.counter(prefix+"bytes_total", "Bytes of frames.", c.InBytes, with("direction", "in")...)
	w.counter(prefix+"bytes_total", "Bytes of frames.", c.OutBytes, with("direction", "out")...)
	for _, k := range []struct {
		dir, kind string
		v         uint64
	}{
		{"in", "interest", c.InInterests}, {"in", "data", c.InData}, {"in", "nack", c.InNacks},
		{"out", "interest", c.OutInterests}, {"out", "data", c.OutData}, {"out", "nack", c.OutNacks},
	} {
		w.counter(prefix+"packets_total", "Network packets.", k.v, with("direction", k.dir, "kind", k.kind)...)
	}
	w.counter(prefix+"congestion_marks_total", "Packets sent with a congestion mark set here.", c.CongestionMarks, id...)
	w.counter(prefix+"retransmissions_total", "Frames sent again by reliable links.", c.Retransmissions, id...)
	for _, k := range []struct {
		reason string
		v      uint64
	}{
		{"in_malformed", c.Drops.InMalformed}, {"in_fragments", c.Drops.InFragments}, {"out_queue", c.Drops.OutQueue},
		{"out_down", c.Drops.OutDown}, {"out_oversize", c.Drops.OutOversize}, {"out_transport", c.Drops.OutTransport},
		{"out_budget", c.Drops.OutBudget}, {"out_unacked", c.Drops.OutUnacked},
	} {
		w.counter(prefix+"drops_total", "What was lost, by reason.", k.v, with("reason", k.reason)...)
	}
}

func persistencyName(p face.Persistency) string {
	switch p {
	case face.PersistencyPersistent:
		return "persistent"
	case face.PersistencyPermanent:
		return "permanent"
	}
	return "on-demand"
}

// sink sends samples. Labels are pairs of name and value.
type sink struct{ ch chan<- prometheus.Metric }

func (s *sink) counter(name, help string, v uint64, labels ...string) {
	s.send(name, help, prometheus.CounterValue, float64(v), labels)
}

func (s *sink) value(name, help string, v float64, labels ...string) {
	s.send(name, help, prometheus.CounterValue, v, labels)
}

func (s *sink) gauge(name, help string, v float64, labels ...string) {
	s.send(name, help, prometheus.GaugeValue, v, labels)
}

func (s *sink) send(name, help string, t prometheus.ValueType, v float64, labels []string) {
	var names, values []string
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	d := prometheus.NewDesc("ndnpop_"+name, help, names, nil)
	s.ch <- prometheus.MustNewConstMetric(d, t, v, values...)
}

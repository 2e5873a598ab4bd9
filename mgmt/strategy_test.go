package mgmt

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"ndnpop/ndn"
)

func genName(t *rapid.T, label string) ndn.Name {
	n := ndn.Name{}
	for _, c := range rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, label) {
		n = n.AppendGeneric(c)
	}
	return n
}

// What is encoded decodes to the same.
func TestStrategyDatasets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, nat := rapid.String(), rapid.Uint64()
		info := StrategyInfo{Strategy: genName(t, "strategy"), Usage: text.Draw(t, "usage")}
		for range rapid.IntRange(0, 3).Draw(t, "params") {
			info.Params = append(info.Params, StrategyParam{text.Draw(t, "name"), text.Draw(t, "usage")})
		}
		infos, err := ParseStrategyInfos(info.AppendTo(info.AppendTo(nil)))
		if err != nil || len(infos) != 2 || !reflect.DeepEqual(infos[1], info) {
			t.Fatalf("%+v, %v, want %+v", infos, err, info)
		}

		r := StrategyReport{Strategy: genName(t, "strategy")}
		r.Columns = rapid.SliceOfN(text, 1, 3).Draw(t, "columns")
		for range rapid.IntRange(0, 3).Draw(t, "rows") {
			r.Rows = append(r.Rows, ReportRow{nat.Draw(t, "face"), rapid.SliceOfN(rapid.Float64(), len(r.Columns), len(r.Columns)).Draw(t, "cells")})
		}
		report, err := ParseStrategyReport(r.AppendTo(nil))
		if err != nil || !reflect.DeepEqual(report, r) {
			t.Fatalf("%+v, %v, want %+v", report, err, r)
		}

		tr := Trace{Lost: nat.Draw(t, "lost")}
		for range rapid.IntRange(0, 3).Draw(t, "decisions") {
			d := Decision{
				Time: nat.Draw(t, "time"), Kind: nat.Draw(t, "kind"), Name: genName(t, "name"), Strategy: genName(t, "strategy"),
				Event: text.Draw(t, "event"), Incoming: nat.Draw(t, "in"), FaceID: nat.Draw(t, "to"), Result: text.Draw(t, "result"), Reason: text.Draw(t, "reason"),
			}
			for range rapid.IntRange(0, 3).Draw(t, "candidates") {
				d.Candidates = append(d.Candidates, Candidate{nat.Draw(t, "face"), nat.Draw(t, "cost"), rapid.Float64().Draw(t, "weight"), text.Draw(t, "note")})
			}
			tr.Decisions = append(tr.Decisions, d)
		}
		trace, err := ParseTrace(tr.AppendTo(nil))
		if err != nil || !reflect.DeepEqual(trace, tr) {
			t.Fatalf("%+v, %v, want %+v", trace, err, tr)
		}
	})
}

// A row must fit the columns: whoever prints it indexes by them.
func TestReportOfAnotherWidthIsMalformed(t *testing.T) {
	r := StrategyReport{Strategy: ndn.MustName("/s"), Columns: []string{"a", "b"}, Rows: []ReportRow{{1, []float64{math.Inf(1)}}}}
	if _, err := ParseStrategyReport(r.AppendTo(nil)); err == nil {
		t.Error("accepted")
	}
}

// FuzzStrategyDatasets: nothing that a forwarder sends brings a tool down, and
// what is accepted encodes to something that decodes to the same.
func FuzzStrategyDatasets(f *testing.F) {
	d := Decision{Name: ndn.MustName("/a"), Strategy: ndn.MustName("/s"), Candidates: []Candidate{{1, 2, 3, "x"}}}
	f.Add((&Trace{Decisions: []Decision{d}}).AppendTo(nil))
	f.Add((&StrategyReport{Strategy: ndn.MustName("/s"), Columns: []string{"a"}, Rows: []ReportRow{{1, []float64{2}}}}).AppendTo(nil))
	f.Add((&StrategyInfo{Strategy: ndn.MustName("/s"), Params: []StrategyParam{{"a", "b"}}}).AppendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if tr, err := ParseTrace(b); err == nil {
			w := tr.AppendTo(nil)
			if again, err := ParseTrace(w); err != nil || !bytes.Equal(again.AppendTo(nil), w) {
				t.Fatalf("trace %x: %v", w, err)
			}
		}
		if r, err := ParseStrategyReport(b); err == nil {
			w := r.AppendTo(nil)
			if again, err := ParseStrategyReport(w); err != nil || !bytes.Equal(again.AppendTo(nil), w) {
				t.Fatalf("report %x: %v", w, err)
			}
		}
		if _, err := ParseStrategyInfos(b); err != nil {
			return
		}
	})
}

package mgmt

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/ndn/mgmt_2022"
	"pgregory.net/rapid"

	"ndnpop/internal/recorded"
	"ndnpop/ndn"
)

// Every dataset that NFD sent decodes, and encodes to the same bytes.
func TestGoldenDatasets(t *testing.T) {
	seen := map[string]int{}
	for _, p := range recorded.Read(t, nfdTools) {
		if p.ToForwarder || p.Kind != ndn.KindData || !p.Data.Name.HasPrefix(Localhost()) {
			continue
		}
		name := p.Data.Name.Suffix(2).Prefix(2).String()
		var got []byte
		var err error
		switch c := p.Data.Content; name {
		case "/faces/list", "/faces/query":
			got, err = reencode(c, ParseFaceStatuses, (*FaceStatus).AppendTo)
		case "/faces/channels":
			got, err = reencode(c, ParseChannelStatuses, (*ChannelStatus).AppendTo)
		case "/fib/list":
			got, err = reencode(c, ParseFibEntries, (*FibEntry).AppendTo)
		case "/rib/list":
			got, err = reencode(c, ParseRibEntries, (*RibEntry).AppendTo)
		case "/strategy-choice/list":
			got, err = reencode(c, ParseStrategyChoices, (*StrategyChoice).AppendTo)
		case "/cs/info":
			got, err = reencode(c, one(ParseCsInfo), (*CsInfo).AppendTo)
		case "/status/general":
			got, err = reencode(c, one(ParseForwarderStatus), (*ForwarderStatus).AppendTo)
		default:
			continue
		}
		seen[name]++
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !bytes.Equal(got, p.Data.Content) {
			t.Errorf("%s: encodes to\n%x, was\n%x", name, got, p.Data.Content)
		}
	}
	if len(seen) != 8 {
		t.Errorf("datasets in the recording: %v", seen)
	}
}

func reencode[T any](b []byte, parse func([]byte) ([]T, error), enc func(*T, []byte) []byte) ([]byte, error) {
	items, err := parse(b)
	var out []byte
	for i := range items {
		out = enc(&items[i], out)
	}
	return out, err
}

// Random values of all fields of every element: our encoding decodes to the
// same value, and ndnd's models encode to the same bytes.
func TestSameBytesAsNdnd(t *testing.T) {
	for _, tc := range []struct {
		name string
		same func(rt *rapid.T)
	}{
		{name: "ControlParameters", same: func(rt *rapid.T) {
			p := drawStruct[ControlParameters](rt)
			wire := p.AppendTo(nil)
			v, err := mgmt_2022.ParseControlParameters(enc.NewBufferView(wire), false)
			if err != nil {
				rt.Fatal(err)
			}
			sameBytes(rt, wire, v.Encode())
			again, err := ParseControlParameters(wire)
			if err != nil || !reflect.DeepEqual(p, again) {
				rt.Fatalf("%v\n%+v\n%+v", err, p, again)
			}
		}},
		{name: "FaceStatus", same: func(rt *rapid.T) {
			s := drawStruct[FaceStatus](rt)
			// What is ours goes unnoticed at ndnd.
			more := s.AppendTo(nil)
			if again, err := ParseFaceStatuses(more); err != nil || !reflect.DeepEqual([]FaceStatus{s}, again) {
				rt.Fatalf("%v\n%+v\n%+v", err, s, again)
			}
			s.DownFor, s.DownWhy = FaceStatus{}.DownFor, ""
			theirs, err := mgmt_2022.ParseFaceStatusMsg(enc.NewBufferView(more), false)
			if err != nil {
				rt.Fatal(err)
			}
			sameBytes(rt, s.AppendTo(nil), theirs.Encode())
			wire := s.AppendTo(nil)
			v, err := mgmt_2022.ParseFaceStatusMsg(enc.NewBufferView(wire), false)
			if err != nil {
				rt.Fatal(err)
			}
			sameBytes(rt, wire, v.Encode())
			again, err := ParseFaceStatuses(wire)
			if err != nil || !reflect.DeepEqual([]FaceStatus{s}, again) {
				rt.Fatalf("%v\n%+v\n%+v", err, s, again)
			}
		}},
		{name: "FaceQueryFilter", same: func(rt *rapid.T) {
			s := drawStruct[FaceQueryFilter](rt)
			wire := s.AppendTo(nil)
			v, err := mgmt_2022.ParseFaceQueryFilter(enc.NewBufferView(wire), false)
			if err != nil {
				rt.Fatal(err)
			}
			sameBytes(rt, wire, v.Encode())
			again, err := ParseFaceQueryFilter(wire)
			if err != nil || !reflect.DeepEqual(s, again) {
				rt.Fatalf("%v\n%+v\n%+v", err, s, again)
			}
		}},
		{name: "FaceEvent", same: func(rt *rapid.T) {
			s := drawStruct[FaceEvent](rt)
			wire := s.AppendTo(nil)
			v, err := mgmt_2022.ParseFaceEventNotification(enc.NewBufferView(wire), false)
			if err != nil {
				rt.Fatal(err)
			}
			sameBytes(rt, wire, v.Encode())
			again, err := ParseFaceEvent(wire)
			if err != nil || s != again {
				rt.Fatalf("%v\n%+v\n%+v", err, s, again)
			}
		}},
		{name: "ForwarderStatus", same: func(rt *rapid.T) {
			s := drawStruct[ForwarderStatus](rt)
			// ndnd keeps the two times as durations: not beyond 63 bits of
			// nanoseconds.
			s.Started %= 1 << 40
			s.Now %= 1 << 40
			wire := s.AppendTo(nil)
			v, err := mgmt_2022.ParseGeneralStatus(enc.NewBufferView(wire), false)
			if err != nil {
				rt.Fatal(err)
			}
			sameBytes(rt, wire, v.Encode())
			again, err := ParseForwarderStatus(wire)
			if err != nil || !reflect.DeepEqual(s, again) {
				rt.Fatalf("%v\n%+v\n%+v", err, s, again)
			}
			// What is ours goes unnoticed at ndnd.
			for range rapid.IntRange(1, 3).Draw(rt, "shards") {
				s.Shards = append(s.Shards, drawStruct[ShardStatus](rt))
			}
			more := s.AppendTo(nil)
			if v, err = mgmt_2022.ParseGeneralStatus(enc.NewBufferView(more), false); err != nil {
				rt.Fatal(err)
			}
			sameBytes(rt, wire, v.Encode())
			again, err = ParseForwarderStatus(more)
			if err != nil || !reflect.DeepEqual(s, again) {
				rt.Fatalf("%v\n%+v\n%+v", err, s, again)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { rapid.Check(t, tc.same) })
	}
}

// drawStruct draws every exported field of one of the protocol's structs.
func drawStruct[T any](rt *rapid.T) T {
	var v T
	s := reflect.ValueOf(&v).Elem()
	for i := range s.NumField() {
		f := s.Field(i)
		label := s.Type().Field(i).Name
		switch x := f.Addr().Interface().(type) {
		case *uint64:
			*x = drawNat(rt, label)
		case *string:
			*x = rapid.StringMatching(`[a-z0-9:/.]{1,30}`).Draw(rt, label)
		case *ndn.Name:
			*x = drawName(rt, label)
		default:
			set := rapid.Bool().Draw(rt, label+" set")
			m := f.Addr().MethodByName("Set")
			if !set || !m.IsValid() {
				continue
			}
			var arg reflect.Value
			if m.Type().In(0) == reflect.TypeFor[ndn.Name]() {
				arg = reflect.ValueOf(drawName(rt, label))
			} else {
				arg = reflect.ValueOf(drawNat(rt, label))
			}
			m.Call([]reflect.Value{arg})
		}
	}
	return v
}

func drawNat(rt *rapid.T, label string) uint64 {
	return rapid.Uint64().Draw(rt, label) >> rapid.IntRange(0, 63).Draw(rt, label+" shift")
}

func drawName(rt *rapid.T, label string) ndn.Name {
	n := ndn.Name{}
	for range rapid.IntRange(0, 4).Draw(rt, label+" length") {
		n = n.AppendGeneric(rapid.StringN(0, 10, 40).Draw(rt, label))
	}
	return n
}

func sameBytes(rt *rapid.T, ours []byte, theirs enc.Wire) {
	if !bytes.Equal(ours, theirs.Join()) {
		rt.Fatalf("ours %x\nndnd %x", ours, theirs.Join())
	}
}

// What the decoders refuse, each with the bytes.
func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		wire       []byte
	}{
		{"name longer than the element", "cut short", []byte{0x68, 4, 7, 200, 8, 1}},
		{"name of 2^63 bytes", "cut short", []byte{0x68, 11, 7, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 1, 0}},
		{"number of 3 bytes", "length", []byte{0x68, 5, 0x69, 3, 1, 2, 3}},
		{"field twice", "twice", []byte{0x68, 6, 0x69, 1, 1, 0x69, 1, 2}},
		{"unknown critical field", "critical", []byte{0x68, 3, 0x71, 1, 1}},
		{"bytes behind", "after the end", []byte{0x68, 3, 0x69, 1, 1, 0}},
		{"another element", "instead of", []byte{0x65, 3, 0x69, 1, 1}},
		{"nothing", "cut short", nil},
		{"strategy without a name", "type", []byte{0x68, 5, 0x6b, 3, 8, 1, 'a'}},
	} {
		_, err := ParseControlParameters(tc.wire)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if p, err := ParseControlParameters([]byte{0x68, 3, 0x74, 1, 1}); err != nil || p.Name.IsSet() {
		t.Errorf("unknown non-critical field: %v", err)
	}
}

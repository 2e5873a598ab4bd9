package config

import (
	"strings"
	"testing"
)

// TestToggle: reliability is left to the peer unless a file says otherwise.
func TestToggle(t *testing.T) {
	c, err := Parse([]byte("[faces.udp]\nreliability = true\n[[face]]\nuri = \"udp4://192.0.2.7\"\n[[face]]\nuri = \"udp4://192.0.2.8\"\nreliability = false\n"), base(), testKnown)
	if err != nil {
		t.Fatal(err)
	}
	if c.Faces.UDP.Reliability != On || c.Face[0].Reliability != Auto || c.Face[1].Reliability != Off || base().Faces.UDP.Reliability != Auto {
		t.Errorf("%v %v %v", c.Faces.UDP.Reliability, c.Face[0].Reliability, c.Face[1].Reliability)
	}
	for _, bad := range []string{"1", `"on"`, "1.5"} {
		_, err := Parse([]byte("[faces.udp]\nreliability = "+bad+"\n"), base(), testKnown)
		if err == nil || !strings.Contains(err.Error(), `2:15: faces.udp.reliability: must be true, false or "auto"`) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestRates: the rates of a shaped face belong together.
func TestRates(t *testing.T) {
	const face = "[[face]]\nuri = \"udp4://192.0.2.7\"\n"
	c, err := Parse([]byte(face+"rate_out = \"1.5mbit\"\nrate_in = \"100 kbit\"\n"), base(), testKnown)
	if err != nil || c.Face[0].RateOut != 1_500_000 || c.Face[0].RateIn != 100_000 || c.Face[0].RateOut.String() != "1500kbit" {
		t.Errorf("%v, %v", c, err)
	}
	for text, want := range map[string]string{
		face + "rate_out = \"1mbit\"\n": "belong together",
		face + "rate_out = 5\n":         "3:12: face[0].rate_out: must be a rate in quotes",
		face + "rate_out = \"5\"\n":     "is not a rate",
		face + "rate_out = \"-5bit\"\n": "is not a rate",
		"[[face]]\nuri = \"tcp4://192.0.2.7\"\nrate_out = \"1mbit\"\nrate_in = \"1mbit\"\n": "only UDP faces are shaped",
	} {
		if _, err := Parse([]byte(text), base(), testKnown); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

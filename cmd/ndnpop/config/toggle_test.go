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

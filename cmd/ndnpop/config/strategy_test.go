package config

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"ndnpop/ndn"
)

const twoFaces = `
[[face]]
uri = "udp4://192.0.2.1:6363"
name = "paris"
[[face]]
uri = "udp4://192.0.2.2:6363"
name = "rome"
[[strategy]]
prefix = "/a"
strategy = "multicast"
`

// Values by face become points of the faces that are meant.
func TestStrategyByFace(t *testing.T) {
	ids := func(ref string) []ndn.FaceID {
		switch ref {
		case "paris":
			return []ndn.FaceID{262}
		case "rome", "udp4://192.0.2.2:6363":
			return []ndn.FaceID{258}
		}
		return nil
	}
	for lines, want := range map[string]string{
		`params = { a = 1 }`:                                "a~1",
		`params = { penalty = "7:1" }`:                      "penalty~7:1",
		`params = { penalty = { paris = 50 } }`:             "penalty~262:50",
		"[strategy.params.penalty]\nrome = 1\nparis = 2.5":  "penalty~258:1,262:2.5",
		`terms = { price = { paris = 0.02, rome = 0.05 } }`: "penalty~258:0.05,262:0.02",
		"params = { price-weight = 2000, load-weight = 3, z = true }\nterms = { price = { paris = 0.02, rome = 0.05 }, load = { \"udp4://192.0.2.2:6363\" = 10 } }": "penalty~258:130,262:40/z~true",
		"params = { penalty = { paris = 1 } }\nterms = { price = { paris = 2 } }":                                                                                   "penalty~262:3",
	} {
		c, err := Parse([]byte(twoFaces+lines), base(), Known{})
		if err != nil {
			t.Errorf("%s: %v", lines, err)
			continue
		}
		n, err := c.Strategy[0].FullName(ids)
		uri, _ := url.PathUnescape(n.String())
		if got := strings.TrimPrefix(uri, "/localhost/nfd/strategy/multicast/"); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", lines, got, err, want)
		}
		// Faces that do not exist have no points.
		n, err = c.Strategy[0].FullName(func(string) []ndn.FaceID { return nil })
		if err != nil || c.Strategy[0].NamesFaces() == strings.Contains(n.String(), "penalty") && want != "a~1" {
			t.Errorf("%s without faces: %s, %v", lines, n, err)
		}
	}
}

func TestStrategyByFaceRefused(t *testing.T) {
	for lines, want := range map[string]string{
		`params = { penalty = { pariz = 50 } }`:                                   `did you mean "paris"?`,
		`params = { penalty = { paris = "x" } }`:                                  "must be a number",
		`params = { penalty = { paris = -1 } }`:                                   "0 or more",
		`params = { other = { paris = 1 } }`:                                      "as terms",
		`terms = { price = 3 }`:                                                   "must be a table of faces",
		`terms = { price = { milan = 3 } }`:                                       `there is no face "milan"`,
		`terms = { price = { paris = "x", rome = -1 } }`:                          "price.paris",
		`terms = { cost = { paris = 3 } }`:                                        "choose another name",
		"params = { price-weight = \"x\" }\nterms = { price = { paris = 3 } }":    "price-weight",
		"params = { price-weight = 1e9 }\nterms = { price = { paris = 3e9 } }":    "at most",
		"params = { penalty = \"1:1\" }\nterms = { price = { paris = 3 } }":       "must be a table of faces where there are terms",
		"[strategy.terms]\nprice = { paris = 3 }\n[strategy.terms.load]\nx = 1.5": `there is no face "x"`,
	} {
		_, err := Parse([]byte(twoFaces+lines), base(), Known{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", lines, err, want)
		} else if !strings.HasPrefix(err.Error(), "1") && !strings.Contains(err.Error(), ":") {
			t.Errorf("%s: no place in %q", lines, err)
		}
	}
}

func TestTermsAreForStrategiesWithPenalties(t *testing.T) {
	known := Known{CheckStrategy: func(n ndn.Name) error {
		if strings.Contains(n.String(), "penalty") {
			return errors.New("no parameter \"penalty\"")
		}
		return nil
	}}
	_, err := Parse([]byte(twoFaces+`terms = { price = { paris = 3 } }`), base(), known)
	if err == nil || !strings.Contains(err.Error(), "multicast takes no terms") {
		t.Error(err)
	}
}

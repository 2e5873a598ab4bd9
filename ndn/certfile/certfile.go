// Package certfile reads the files in which certificates and keys are kept:
// bare TLV, the PEM of ndnd, and the base64 of ndnsec.
package certfile

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"ndnpop/ndn"
)

// ContentSecret is the content type in which ndnd keeps secret keys.
const ContentSecret uint64 = 9

// Errors of Decode and Parse.
var (
	ErrFormat      = errors.New("neither a certificate nor a key")
	ErrCertificate = errors.New("malformed certificate")
)

// Certificate is a certificate (NDN Certificate Format v2).
type Certificate struct {
	Data ndn.Data
	// Key is the name of the key, /<identity>/KEY/<key id>; the certificate's
	// name has an issuer and a version more.
	Key, Identity ndn.Name
	// NotBefore and NotAfter bound the time in which it is valid; both zero
	// when it does not say, which makes it never valid.
	NotBefore, NotAfter time.Time
}

// ValidAt says why the certificate is not valid at a time; nil if it is.
func (c *Certificate) ValidAt(t time.Time) error {
	const layout = "2006-01-02 15:04:05 MST"
	switch {
	case c.NotBefore.IsZero() && c.NotAfter.IsZero():
		return errors.New("has no validity period")
	case t.Before(c.NotBefore):
		return fmt.Errorf("is not valid before %s", c.NotBefore.Format(layout))
	case t.After(c.NotAfter):
		return fmt.Errorf("expired on %s", c.NotAfter.Format(layout))
	}
	return nil
}

// maxFile bounds what Decode takes, in bytes, and maxEntries how many packets.
const (
	maxFile    = 4 << 20
	maxEntries = 1024
)

// Decode returns the packets in a file: certificates, and secret keys as ndnd
// keeps them. Each is a slice of its own. A file in which something cannot be
// read is refused as a whole.
func Decode(b []byte) (certs []Certificate, secrets [][]byte, err error) {
	if len(b) > maxFile {
		return nil, nil, fmt.Errorf("%w: %d bytes are too many", ErrFormat, len(b))
	}
	raw, err := packets(b)
	if err != nil {
		return nil, nil, err
	}
	for n := 0; len(raw) > 0; n++ {
		e, rest, err := ndn.NextElement(raw)
		if err != nil || e.Type != ndn.TypeData || n == maxEntries {
			return nil, nil, ErrFormat
		}
		wire := bytes.Clone(raw[:len(raw)-len(rest)])
		raw = rest
		var d ndn.Data
		if err := d.Parse(wire); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		switch d.ContentType {
		case ndn.ContentKey:
			c, err := Parse(wire)
			if err != nil {
				return nil, nil, err
			}
			certs = append(certs, c)
		case ContentSecret:
			secrets = append(secrets, wire)
		default:
			return nil, nil, fmt.Errorf("%w: %s is other content", ErrFormat, d.Name)
		}
	}
	if len(certs)+len(secrets) == 0 {
		return nil, nil, ErrFormat
	}
	return certs, secrets, nil
}

// packets removes the armour.
func packets(b []byte) ([]byte, error) {
	if len(b) > 0 && b[0] == byte(ndn.TypeData) {
		return b, nil
	}
	var out []byte
	for rest := b; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "NDN CERT" && block.Type != "NDN KEY" {
			return nil, fmt.Errorf("%w: it holds a %q; NDN certificates are \"NDN CERT\"", ErrFormat, block.Type)
		}
		out = append(out, block.Bytes...)
	}
	if out != nil {
		return out, nil
	}
	// Base64, perhaps of several files one after the other.
	text := bytes.Join(bytes.Fields(b), nil)
	for len(text) > 0 {
		end := len(text)
		if i := bytes.IndexByte(text, '='); i >= 0 {
			for end = i; end < len(text) && text[end] == '='; end++ {
			}
		}
		var err error
		if out, err = base64.StdEncoding.AppendDecode(out, text[:end]); err != nil {
			return nil, fmt.Errorf("%w: neither TLV, PEM nor base64", ErrFormat)
		}
		text = text[end:]
	}
	return out, nil
}

// Parse reads a certificate. The result refers to wire.
func Parse(wire []byte) (Certificate, error) {
	var c Certificate
	if err := c.Data.Parse(wire); err != nil {
		return c, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	name := c.Data.Name
	at, ok := name.At(-4)
	switch {
	case c.Data.ContentType != ndn.ContentKey:
		return c, fmt.Errorf("%w: %s has content type %d, not that of a key", ErrCertificate, name, c.Data.ContentType)
	case !ok || at.Type != ndn.TypeGeneric || string(at.Value) != "KEY":
		return c, fmt.Errorf("%w: %s is not /<identity>/KEY/<key>/<issuer>/<version>", ErrCertificate, name)
	}
	c.Key, c.Identity = name.Prefix(-2), name.Prefix(-4)
	if err := c.validity(); err != nil {
		return c, fmt.Errorf("%w: %s: %w", ErrCertificate, name, err)
	}
	return c, nil
}

// Elements of the ValidityPeriod (NDN Certificate Format v2).
const (
	typeValidity  = 0xfd
	typeNotBefore = 0xfe
	typeNotAfter  = 0xff
)

var errValidity = errors.New("bad validity period")

func (c *Certificate) validity() error {
	for v := c.Data.SigInfo; len(v) > 0; {
		e, rest, err := ndn.NextElement(v)
		if err != nil {
			return errValidity
		}
		v = rest
		if e.Type != typeValidity {
			continue
		}
		for p := e.Value; len(p) > 0; {
			f, rest, err := ndn.NextElement(p)
			if err != nil {
				return errValidity
			}
			p = rest
			var to *time.Time
			switch f.Type {
			case typeNotBefore:
				to = &c.NotBefore
			case typeNotAfter:
				to = &c.NotAfter
			default:
				continue
			}
			if *to, err = time.Parse("20060102T150405", string(f.Value)); err != nil {
				return errValidity
			}
		}
		if c.NotBefore.IsZero() || c.NotAfter.IsZero() {
			return errValidity
		}
		return nil
	}
	return nil
}

// Locator is the name in a packet's KeyLocator, nil when it names no key.
func Locator(d *ndn.Data) ndn.Name {
	if len(d.KeyLocator) == 0 || d.KeyLocator[0] != byte(ndn.TypeName) {
		return nil
	}
	n, err := ndn.ParseNameTLV(d.KeyLocator)
	if err != nil {
		return nil
	}
	return n
}

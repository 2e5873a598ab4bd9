package cli

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"

	"ndnpop/consumer/output"
	"ndnpop/ndn/certfile"
	"ndnpop/ndn/verify"
)

// planVerify sets what is checked of each packet.
func (f *catFlags) planVerify(p *catPlan) error {
	if f.schema != "" && (f.verify == "none" || f.verify == "digest" || strings.HasPrefix(f.verify, "hmac:")) {
		return errors.New("--trust-schema needs --verify FILE with the certificates to begin with")
	}
	switch f.verify {
	case "none":
		p.verify, p.checked = output.VerifyNone, ", not verified"
		return nil
	case "digest":
		p.verify = output.VerifyDigest
		return nil
	case "":
		return fmt.Errorf("--verify is empty: %s", verifyHelp)
	}
	cfg, sum, err := f.trusted()
	if err != nil {
		return err
	}
	if p.trust, err = verify.New(cfg); err != nil {
		return fmt.Errorf("--verify %s: %w", f.verify, err)
	}
	p.verify, p.checked = output.VerifyTrust, fmt.Sprintf(", verified with the trust %x", sum[:4])
	return nil
}

const verifyHelp = "want none, digest, a FILE with trusted certificates, or hmac:FILE with a shared key"

// trusted reads the files of --verify and --trust-schema, and hashes them.
func (f *catFlags) trusted() (cfg verify.Config, sum [sha256.Size]byte, err error) {
	path, shared := strings.CutPrefix(f.verify, "hmac:")
	b, err := os.ReadFile(path)
	if err != nil {
		return cfg, sum, fmt.Errorf("--verify: %w; %s", err, verifyHelp)
	}
	if shared {
		if len(b) == 0 {
			return cfg, sum, fmt.Errorf("--verify: the shared key in %s is empty", path)
		}
		cfg.Secret = b
		return cfg, sha256.Sum256(b), nil
	}
	certs, secrets, err := certfile.Decode(b)
	switch {
	case err != nil:
		return cfg, sum, fmt.Errorf("--verify: %s holds no certificates: %w", path, err)
	case len(certs) == 0 && len(secrets) > 0:
		return cfg, sum, fmt.Errorf("--verify: %s holds a secret key; its certificate is wanted (ndnpop key export --cert)", path)
	}
	cfg.Anchors = certs
	all := bytes.Clone(b)
	if f.schema != "" {
		s, err := os.ReadFile(f.schema)
		if err != nil {
			return cfg, sum, fmt.Errorf("--trust-schema: %w", err)
		}
		if cfg.Schema, err = verify.ParseSchema(s); err != nil {
			return cfg, sum, fmt.Errorf("--trust-schema %s: %w", f.schema, err)
		}
		all = append(all, s...)
	}
	return cfg, sha256.Sum256(all), nil
}

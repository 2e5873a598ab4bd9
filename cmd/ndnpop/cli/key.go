package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ndnpop/ndn"
	"ndnpop/ndn/certfile"
	"ndnpop/producer/sign"
)

// keyFlags are the flags of all key commands.
type keyFlags struct {
	e        *env
	keychain string
}

func newKeyCmd(e *env) *cobra.Command {
	f := &keyFlags{e: e}
	c := &cobra.Command{
		Use:   "key",
		Short: "Make and move signing keys and their certificates",
		Long: `Manages the keychain, a directory of keys and certificates in the format of ndnd
("ndnd sec"). "ndnpop put --sign key:NAME" signs with its keys, and
"ndnpop cat --verify FILE" trusts certificates that were exported from it.

NAME is the name of a key, or of an identity for its default key.`,
		Example: `  ndnpop key generate /alice
  ndnpop key export /alice --cert > alice.cert
  ndnpop key list`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringVar(&f.keychain, "keychain", "", "`directory` of the keychain, also as dir:///path (default ~/.ndn/keys)")
	c.AddCommand(newKeyExportCmd(f), newKeyGenerateCmd(f), newKeyImportCmd(f), newKeyListCmd(f), newKeySignCmd(f))
	return c
}

// open opens the keychain and tells what in it cannot be read.
func (f *keyFlags) open(create bool) (*sign.Keychain, error) {
	k, err := sign.OpenKeychain(f.keychain, create)
	if err != nil {
		return nil, err
	}
	for _, s := range k.Skipped() {
		fmt.Fprintf(f.e.stderr, "ndnpop: skipped: %v\n", s)
	}
	return k, nil
}

// find opens the keychain and finds a key.
func (f *keyFlags) find(c *cobra.Command, name string) (*sign.KeyEntry, error) {
	n, err := ndn.ParseName(name)
	if err != nil {
		return nil, badUsage(c, err)
	}
	k, err := f.open(false)
	if err != nil {
		return nil, err
	}
	return k.Find(n)
}

// clockSkew is how far the clocks of others may be behind when a certificate
// is new.
const clockSkew = 10 * time.Minute

func addDays(c *cobra.Command, days *int) {
	c.Flags().IntVar(days, "days", 365, "how many `days` the certificate is valid")
}

func validity(days int) (from, to time.Time, err error) {
	const most = 100 * 365
	if days < 1 || days > most {
		return from, to, fmt.Errorf("--days %d: want 1 to %d", days, most)
	}
	now := time.Now()
	return now.Add(-clockSkew), now.AddDate(0, 0, days), nil
}

func newKeyGenerateCmd(f *keyFlags) *cobra.Command {
	var kind string
	var days int
	c := &cobra.Command{
		Use:   "generate IDENTITY",
		Short: "Make a key with a self-signed certificate",
		Long: `Makes a key for IDENTITY, a name, with a self-signed certificate, and prints the
key's name. The keychain is made if it does not exist.`,
		Example: `  ndnpop key generate /alice
  ndnpop key generate /cdn/origin --type ed25519 --days 90`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := ndn.ParseName(args[0])
			if err != nil {
				return badUsage(c, err)
			}
			from, to, err := validity(days)
			if err != nil {
				return badUsage(c, err)
			}
			k, err := f.open(true)
			if err != nil {
				return err
			}
			key, err := k.Generate(id, kind, from, to)
			if errors.Is(err, sign.ErrKeyType) {
				return badUsage(c, fmt.Errorf("--type: %w", err))
			} else if err != nil {
				return err
			}
			_, err = fmt.Fprintln(f.e.stdout, key.Name)
			return err
		},
	}
	c.Flags().StringVar(&kind, "type", "ecc", "`"+strings.Join(sign.KeyKinds(), "|")+"`: ECDSA on P-256, RSA with 2048 bits, or Ed25519")
	addDays(c, &days)
	completeWith(c, "type", sign.KeyKinds())
	return c
}

// keyJSON is one key of "key list --json".
type keyJSON struct {
	Key      string     `json:"key"`
	Identity string     `json:"identity"`
	Type     string     `json:"type"`
	Certs    []certJSON `json:"certificates"`
}

type certJSON struct {
	Name      string    `json:"name"`
	Issuer    string    `json:"issuer"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	Valid     bool      `json:"valid"`
}

func describeCert(c *certfile.Certificate) certJSON {
	issuer := certfile.Locator(&c.Data)
	j := certJSON{Name: c.Data.Name.String(), NotBefore: c.NotBefore, NotAfter: c.NotAfter, Valid: c.ValidAt(time.Now()) == nil}
	if issuer != nil {
		j.Issuer = issuer.String()
	}
	return j
}

func newKeyListCmd(f *keyFlags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List keys and their certificates",
		Long: `Lists the keys, the default key of each identity first, with the certificate
that signatures name.`,
		Example: `  ndnpop key list
  ndnpop key list --json --keychain /etc/ndnpop/keys`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := f.open(false)
			if err != nil {
				return err
			}
			list := []keyJSON{}
			for _, e := range k.Keys() {
				j := keyJSON{Key: e.Name.String(), Identity: e.Identity.String(), Type: e.Kind(), Certs: []certJSON{}}
				for i := range e.Certs {
					j.Certs = append(j.Certs, describeCert(&e.Certs[i]))
				}
				list = append(list, j)
			}
			if asJSON {
				return printJSON(f.e.stdout, list)
			}
			return printKeys(f.e.stdout, list)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printKeys(w io.Writer, list []keyJSON) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tTYPE\tCERTIFICATE")
	for _, k := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", k.Key, k.Type, k.best(time.Now()))
	}
	return t.Flush()
}

// best describes the certificate that signatures name.
func (k *keyJSON) best(now time.Time) string {
	if len(k.Certs) == 0 {
		return "none"
	}
	c := &k.Certs[0]
	by := "by " + c.Issuer
	if c.Issuer == k.Key || strings.HasPrefix(c.Issuer, k.Key+"/") {
		by = "self-signed"
	}
	const day = 24 * time.Hour
	switch left := c.NotAfter.Sub(now); {
	case now.Before(c.NotBefore):
		return fmt.Sprintf("%s, not valid before %s", by, c.NotBefore.Format(time.DateTime))
	case left < 0:
		return fmt.Sprintf("%s, expired on %s", by, c.NotAfter.Format(time.DateOnly))
	default:
		return fmt.Sprintf("%s, %.0f days left", by, math.Floor(float64(left)/float64(day)))
	}
}

func newKeyExportCmd(f *keyFlags) *cobra.Command {
	var cert bool
	c := &cobra.Command{
		Use:   "export NAME",
		Short: "Print a secret key, or a certificate",
		Long: `Prints the secret key NAME in PEM, as "ndnd sec key-export" does; with --cert its
certificate, which is not secret.`,
		Example: `  ndnpop key export /alice --cert > alice.cert
  ndnpop key export /alice > alice.key`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := f.find(c, args[0])
			if err != nil {
				return err
			}
			out, err := e.Export()
			if cert {
				out, err = e.ExportCert()
			}
			if err != nil {
				return err
			}
			_, err = f.e.stdout.Write(out)
			return err
		},
	}
	c.Flags().BoolVar(&cert, "cert", false, "print the certificate, not the secret key")
	return c
}

func newKeyImportCmd(f *keyFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "import [FILE or -]",
		Short: "Take keys and certificates into the keychain",
		Long: `Takes the keys and certificates in FILE, or standard input, into the keychain:
PEM as ndnd and "ndnpop key export" write it, TLV, or the base64 of "ndnsec
cert-dump". The keychain is made if it does not exist. The encrypted keys of
"ndnsec export" are not understood.`,
		Example: `  ndnpop key import alice.key
  ndnd sec keygen /alice ed25519 | ndnpop key import`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			b, err := readInput(f.e, args)
			if err != nil {
				return err
			}
			k, err := f.open(true)
			if err != nil {
				return err
			}
			keys, certs, err := k.Import(b)
			if err != nil {
				err = fmt.Errorf("%s: %w", inputName(args), err)
			}
			for _, n := range keys {
				_, e := fmt.Fprintf(f.e.stdout, "key %s\n", n)
				err = cmp.Or(err, e)
			}
			for _, n := range certs {
				_, e := fmt.Fprintf(f.e.stdout, "certificate %s\n", n)
				err = cmp.Or(err, e)
			}
			return err
		},
	}
}

// warnInvalid tells of a certificate that makes others refuse what is signed. It is
// no error: this clock may be the one that is wrong.
func warnInvalid(w io.Writer, c *certfile.Certificate) {
	if err := c.ValidAt(time.Now()); err != nil {
		fmt.Fprintf(w, "ndnpop: warning: consumers will refuse what is signed: the certificate %s %v; have the key certified anew (ndnpop key sign), or generate another one\n", c.Data.Name, err)
	}
}

// inputName is what readInput reads, for people.
func inputName(args []string) string {
	if len(args) == 0 || args[0] == "-" {
		return "standard input"
	}
	return args[0]
}

// readInput reads the file that args names, or standard input.
func readInput(e *env, args []string) ([]byte, error) {
	if len(args) == 0 || args[0] == "-" {
		b, err := io.ReadAll(e.stdin)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		return b, nil
	}
	return os.ReadFile(args[0])
}

func newKeySignCmd(f *keyFlags) *cobra.Command {
	var days int
	var issuer string
	c := &cobra.Command{
		Use:   "sign NAME [FILE or -]",
		Short: "Certify another's key",
		Long: `Signs the certificate in FILE, or standard input, anew with the key NAME, and
prints the new certificate. Its owner imports it; whoever trusts NAME's
certificate then also believes what that key signs, for names below its own.`,
		Example: `  ndnpop key sign /cdn bob.cert > bob-by-cdn.cert`,
		Args:    usageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			from, to, err := validity(days)
			if err != nil {
				return badUsage(c, err)
			}
			e, err := f.find(c, args[0])
			if err != nil {
				return err
			}
			b, err := readInput(f.e, args[1:])
			if err != nil {
				return err
			}
			certs, _, err := certfile.Decode(b)
			if err != nil {
				return err
			}
			if len(certs) != 1 {
				return fmt.Errorf("%d certificates to sign, not one", len(certs))
			}
			if len(e.Certs) > 0 { // the best one, which the signature names
				warnInvalid(f.e.stderr, &e.Certs[0])
			}
			out, err := e.Certify(&certs[0], issuer, from, to)
			if err != nil {
				return err
			}
			_, err = f.e.stdout.Write(out)
			return err
		},
	}
	c.Flags().StringVar(&issuer, "issuer", "NA", "the `component` of the certificate's name that tells issuers apart")
	addDays(c, &days)
	return c
}

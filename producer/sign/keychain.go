package sign

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	enc "github.com/named-data/ndnd/std/encoding"
	ndnd "github.com/named-data/ndnd/std/ndn"
	"github.com/named-data/ndnd/std/security"
	"github.com/named-data/ndnd/std/security/keychain"

	"ndnpop/ndn"
)

// Errors of keychains.
var (
	ErrNoKey    = errors.New("it is not in the keychain")
	ErrKeychain = errors.New("there is no such keychain")
)

// openKey finds a key by its name or its identity's, and the certificate to
// name as its locator: the newest, one that others issued before a
// self-signed one.
func openKey(uri string, n ndn.Name) (ndn.Signer, error) {
	if uri == "" {
		var err error
		if uri, err = DefaultKeychain(); err != nil {
			return nil, err
		}
	}
	// ndnd would create the directory, and hide a mistyped path so.
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "dir" {
		return nil, fmt.Errorf("%w: %q is not of the form dir:///path/to/keys", ErrKeychain, uri)
	}
	if fi, err := os.Stat(u.Path); err != nil || !fi.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a directory; `ndnd sec key-import` makes one", ErrKeychain, u.Path)
	}
	certs := &certStore{}
	kc, err := keychain.NewKeyChain(uri, certs)
	if err != nil {
		return nil, fmt.Errorf("keychain %s: %w", uri, err)
	}
	signer := findKey(kc, n.ToNdnd())
	if signer == nil {
		return nil, fmt.Errorf("%w: %s holds no %s, but %s", ErrNoKey, uri, n, list(kc))
	}
	locator := certs.best(signer.KeyName())
	if locator == nil {
		locator = signer.KeyName()
	}
	return NewKey(signer, ndn.FromNdnd(locator)), nil
}

func findKey(kc ndnd.KeyChain, name enc.Name) ndnd.Signer {
	if id := kc.IdentityByName(name); id != nil && len(id.Keys()) > 0 {
		return id.Keys()[0].Signer()
	}
	identity, err := security.GetIdentityFromKeyName(name)
	if err != nil {
		return nil
	}
	if id := kc.IdentityByName(identity); id != nil {
		for _, k := range id.Keys() {
			if k.KeyName().Equal(name) {
				return k.Signer()
			}
		}
	}
	return nil
}

// list names the keys of a keychain, a few of them.
func list(kc ndnd.KeyChain) string {
	const most = 10
	var names []string
	for _, id := range kc.Identities() {
		for _, k := range id.Keys() {
			if len(names) == most {
				return strings.Join(append(names, "…"), ", ")
			}
			names = append(names, k.KeyName().String())
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

// certStore keeps the names of the certificates that a keychain finds. A
// keychain only puts; the other methods of a Store are not there.
type certStore struct {
	ndnd.Store
	names []enc.Name
}

// Put implements ndn.Store of ndnd.
func (s *certStore) Put(name enc.Name, _ []byte) error {
	s.names = append(s.names, name.Clone())
	return nil
}

func (s *certStore) best(key enc.Name) (best enc.Name) {
	better := func(a, b enc.Name) bool {
		if sa, sb := a.At(-2).IsGeneric("self"), b.At(-2).IsGeneric("self"); sa != sb {
			return sb
		}
		return a.At(-1).NumberVal() > b.At(-1).NumberVal()
	}
	for _, n := range s.names {
		if key.IsPrefix(n) && (best == nil || better(n, best)) {
			best = n
		}
	}
	return best
}

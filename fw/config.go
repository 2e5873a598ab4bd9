package fw

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"ndnpop/ndn"
	"ndnpop/table"
)

// Unsolicited says what happens to Data that nobody asked for.
type Unsolicited uint8

// Policies for unsolicited Data, as NFD names them. What is admitted goes to
// the content store and nowhere else.
const (
	DropAll Unsolicited = iota
	AdmitLocal
	AdmitNetwork
	AdmitAll
)

var unsolicitedNames = [...]string{"drop-all", "admit-local", "admit-network", "admit-all"}

// String returns the policy's name.
func (u Unsolicited) String() string { return unsolicitedNames[u] }

// ErrUnsolicited says that a policy's name is unknown.
var ErrUnsolicited = errors.New("unknown policy for unsolicited data")

// ParseUnsolicited returns the policy of a name; the empty name is drop-all.
func ParseUnsolicited(s string) (Unsolicited, error) {
	for i, n := range unsolicitedNames {
		if s == n || (s == "" && i == 0) {
			return Unsolicited(i), nil
		}
	}
	return 0, fmt.Errorf("%w %q: the choices are %s", ErrUnsolicited, s, strings.Join(unsolicitedNames[:], ", "))
}

// Config configures a shard. The zero value is usable: zero fields have the
// defaults given with them.
type Config struct {
	// Seed keys the hashes of names and starts the sequence of Nonces: random
	// in production, fixed where runs must repeat.
	Seed uint64
	// NodeID goes into path tags and should differ between nodes.
	NodeID uint64
	// Shard is this shard's number in its forwarder.
	Shard uint8

	PIT table.PITConfig
	// CS is off when its capacity is zero.
	CS table.CSConfig
	// MaxRoutes is the number of next hops in the FIB; 4,194,304.
	MaxRoutes int
	// MaxStrategies is the number of strategy choices; 4,096.
	MaxStrategies int
	// MaxDeadNonces bounds the dead nonce list; 524,288.
	MaxDeadNonces int
	// DeadNonceLifetime is how long it remembers; 6 s.
	DeadNonceLifetime time.Duration
	// MaxMeasurements bounds what strategies keep per prefix; 65,536, and not
	// less than 64.
	MaxMeasurements int
	// MaxTimers bounds the timers of strategies that belong to no entry;
	// 65,536.
	MaxTimers int
	// MaxLifetime is how long an Interest stays pending at most, whatever its
	// InterestLifetime; 10 min. When the PIT is more than half full it is the
	// default InterestLifetime, 4 s.
	MaxLifetime time.Duration

	// Scratch, if set, is used instead of memory of the shard's own.
	Scratch *Scratch

	// ProducerRegions are the names of the networks this node is in: a
	// forwarding hint with a delegation that is a prefix of one of them has
	// done its work and is stripped.
	ProducerRegions []ndn.Name
	// TrustedHints are the prefixes of delegations that the operator trusts:
	// Data fetched under such a hint answers everybody from the content
	// store.
	TrustedHints []ndn.Name
	Unsolicited  Unsolicited
	// DefaultStrategy serves prefixes without a choice of their own;
	// /localhost/nfd/strategy/best-route.
	DefaultStrategy ndn.Name

	// OnAnnouncement, if set, gets the prefix announcements (whole Data
	// packets, not verified) that strategies want learnt as routes over a face,
	// and the name of the Data that carried it. Both are valid during the call.
	OnAnnouncement func(now ndn.Time, from ndn.FaceID, data ndn.Name, announcement []byte)
}

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&c.MaxRoutes, 1<<22)
	def(&c.MaxStrategies, 1<<12)
	def(&c.MaxDeadNonces, 1<<19)
	def(&c.MaxMeasurements, 1<<16)
	c.MaxMeasurements = max(c.MaxMeasurements, 64) // more than one event uses
	def(&c.MaxTimers, 1<<16)
	if c.DeadNonceLifetime <= 0 {
		c.DeadNonceLifetime = table.DeadNonceLifetime
	}
	if c.MaxLifetime <= 0 {
		c.MaxLifetime = 10 * time.Minute
	}
	if c.DefaultStrategy == nil {
		c.DefaultStrategy = ndn.MustName("/localhost/nfd/strategy/best-route")
	}
	return c
}

package mgmt

import (
	"strings"

	"ndnpop/face"
	proto "ndnpop/mgmt"
)

const localScope = face.ScopeLocal

// command is one verb that changes something.
type command struct {
	module, verb string
	needs, takes fields // takes are those that may be there beside needs
	localhop     bool   // also at /localhop/nfd
	slow         bool   // may wait for a peer
	announce     bool   // its argument is a Data in the application parameters; it has no run
	run          func(*Server, *request) proto.ControlResponse
}

// fields is a set of ControlParameters.
type fields uint32

const (
	fName fields = 1 << iota
	fFaceID
	fURI
	fLocalURI
	fOrigin
	fCost
	fCapacity
	fCount
	fFlags
	fMask
	fStrategy
	fExpiration
	fPersistency
	fMarkInterval
	fMarkThreshold
	fMTU

	fBits = fFlags | fMask // Flags that mean nothing without Mask
	fLink = fBits | fPersistency | fMarkInterval | fMarkThreshold | fMTU
)

// fieldNames are in the order of the constants.
var fieldNames = [...]string{
	"Name", "FaceId", "Uri", "LocalUri", "Origin", "Cost", "Capacity", "Count", "Flags", "Mask", "Strategy",
	"ExpirationPeriod", "FacePersistency", "BaseCongestionMarkingInterval", "DefaultCongestionThreshold", "Mtu",
}

func (f fields) String() string {
	var names []string
	for i, n := range fieldNames {
		if f&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// fieldsOf is what there is of the parameters.
func fieldsOf(p *proto.ControlParameters) (f fields) {
	for i, there := range [...]bool{
		p.Name.IsSet(), p.FaceID.IsSet(), p.URI != "", p.LocalURI != "", p.Origin.IsSet(), p.Cost.IsSet(),
		p.Capacity.IsSet(), p.Count.IsSet(), p.Flags.IsSet(), p.Mask.IsSet(), p.Strategy != nil, p.Expiration.IsSet(),
		p.Persistency.IsSet(), p.MarkInterval.IsSet(), p.MarkThreshold.IsSet(), p.MTU.IsSet(),
	} {
		if there {
			f |= 1 << i
		}
	}
	return f
}

// wrong says what the parameters have too little or too much, empty if nothing.
// A field that a command does not take is refused, as ndn-cxx does: who sends it
// means something that would not happen.
func (c *command) wrong(p *proto.ControlParameters) string {
	has := fieldsOf(p)
	switch {
	case c.needs&^has != 0:
		return "needs " + (c.needs &^ has).String()
	case has&^(c.needs|c.takes) != 0:
		return "takes no " + (has &^ (c.needs | c.takes)).String()
	case c.takes&fBits == fBits && has&fBits != 0 && has&fBits != fBits:
		return "needs Flags and Mask together"
	}
	return ""
}

// commands of all modules (NFD wiki, "Management").
var commands = []command{
	{module: "faces", verb: "create", needs: fURI, takes: fLocalURI | fLink, slow: true, run: (*Server).createFace},
	{module: "faces", verb: "update", takes: fFaceID | fLink, run: (*Server).updateFace},
	{module: "faces", verb: "destroy", needs: fFaceID, run: (*Server).destroyFace},
	{module: "fib", verb: "add-nexthop", needs: fName, takes: fFaceID | fCost, run: (*Server).addNextHop},
	{module: "fib", verb: "remove-nexthop", needs: fName, takes: fFaceID, run: (*Server).removeNextHop},
	{module: "rib", verb: "register", needs: fName, takes: fFaceID | fOrigin | fCost | fFlags | fExpiration, localhop: true, run: (*Server).register},
	{module: "rib", verb: "unregister", needs: fName, takes: fFaceID | fOrigin, localhop: true, run: (*Server).unregister},
	{module: "rib", verb: "announce", announce: true, localhop: true},
	{module: "cs", verb: "config", takes: fCapacity | fBits, run: (*Server).configureCS},
	{module: "cs", verb: "erase", needs: fName, takes: fCount, run: (*Server).eraseCS},
	{module: "strategy-choice", verb: "set", needs: fName | fStrategy, run: (*Server).setStrategy},
	{module: "strategy-choice", verb: "unset", needs: fName, run: (*Server).unsetStrategy},
}

func commandOf(module, verb string) *command {
	for i := range commands {
		if commands[i].module == module && commands[i].verb == verb {
			return &commands[i]
		}
	}
	return nil
}

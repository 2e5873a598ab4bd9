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
	needs        []need
	masked       bool // Flags mean nothing without Mask
	localhop     bool // also at /localhop/nfd
	slow         bool // may wait for a peer
	announce     bool // its argument is a Data in the application parameters; it has no run
	run          func(*Server, *request) proto.ControlResponse
}

// need is a field that a command cannot do without.
type need uint8

const (
	needName need = iota
	needURI
	needFaceID
	needStrategy
)

func (c *command) missing(p *proto.ControlParameters) string {
	var m []string
	for _, n := range c.needs {
		switch {
		case n == needName && !p.Name.IsSet():
			m = append(m, "Name")
		case n == needURI && p.URI == "":
			m = append(m, "Uri")
		case n == needFaceID && !p.FaceID.IsSet():
			m = append(m, "FaceId")
		case n == needStrategy && p.Strategy == nil:
			m = append(m, "Strategy")
		}
	}
	if c.masked && p.Flags.IsSet() != p.Mask.IsSet() {
		m = append(m, "Flags and Mask together")
	}
	return strings.Join(m, ", ")
}

// commands of all modules (NFD wiki, "Management").
var commands = []command{
	{module: "faces", verb: "create", needs: []need{needURI}, masked: true, slow: true, run: (*Server).createFace},
	{module: "faces", verb: "update", masked: true, run: (*Server).updateFace},
	{module: "faces", verb: "destroy", needs: []need{needFaceID}, run: (*Server).destroyFace},
	{module: "fib", verb: "add-nexthop", needs: []need{needName}, run: (*Server).addNextHop},
	{module: "fib", verb: "remove-nexthop", needs: []need{needName}, run: (*Server).removeNextHop},
	{module: "rib", verb: "register", needs: []need{needName}, localhop: true, run: (*Server).register},
	{module: "rib", verb: "unregister", needs: []need{needName}, localhop: true, run: (*Server).unregister},
	{module: "rib", verb: "announce", announce: true, localhop: true},
	{module: "cs", verb: "config", masked: true, run: (*Server).configureCS},
	{module: "cs", verb: "erase", needs: []need{needName}, run: (*Server).eraseCS},
	{module: "strategy-choice", verb: "set", needs: []need{needName, needStrategy}, run: (*Server).setStrategy},
	{module: "strategy-choice", verb: "unset", needs: []need{needName}, run: (*Server).unsetStrategy},
}

func commandOf(module, verb string) *command {
	for i := range commands {
		if commands[i].module == module && commands[i].verb == verb {
			return &commands[i]
		}
	}
	return nil
}

package fw

import (
	"testing"

	"ndnpop/ndn"
)

func TestBestRoute(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 10).route("/a", remote2, 20).route("/a", remote3, 30)
	n.interest(local1, "/a", 1)
	n.want("I401 /a")
	n.after(20 * ms)
	n.interest(local1, "/a", 2)
	n.want("I402 /a") // the next one, on a retransmission
	n.after(30 * ms)
	n.interest(local1, "/a", 3)
	n.want("I403 /a")
	n.after(60 * ms)
	n.interest(local1, "/a", 4)
	n.want("I401 /a") // all have been tried: the one used longest ago
	n.after(100 * ms)
	n.interest(local1, "/a", 5)
	n.want("I402 /a")
	n.data(remote3, "/a")
	n.want("D300 /a")
	// A queue that is full is passed over.
	n.reject[remote1] = true
	n.interest(local1, "/a/b", 1)
	n.want("I402 /a/b")
	n.idle()
}

func TestBestRouteNotBack(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 10).route("/a", remote2, 20)
	n.interest(remote1, "/a", 1)
	n.want("I402 /a")
	n.s.RemoveNextHop(n.now, ndn.MustName("/a"), remote2)
	n.interest(remote1, "/a/b", 1)
	n.want("N401 /a/b NoRoute")
}

// While one upstream's Nack has come and another's has not, a retransmission
// goes to one that has not refused.
func TestBestRouteAfterNack(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 10).route("/a", remote2, 20)
	n.interest(local1, "/a", 1)
	up := n.want("I401 /a")[0]
	n.after(20 * ms)
	n.interest(local1, "/a", 2)
	n.want("I402 /a")
	n.nackFor(up, ndn.NackNoRoute)
	n.want()
	n.after(100 * ms)
	n.interest(local1, "/a", 3)
	n.want("I401 /a") // used longest ago
	n.idle()
}

func TestBestRouteFaceDown(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 10).route("/a", remote2, 20)
	for _, name := range []string{"/a/1", "/a/2", "/a/3"} {
		n.interest(local1, name, 1)
	}
	n.want("I401 /a/1", "I401 /a/2", "I401 /a/3")
	n.data(remote1, "/a/2")
	n.want("D300 /a/2")
	n.s.FaceDown(n.now, remote1)
	n.want("I402 /a/1", "I402 /a/3")
	n.data(remote2, "/a/1")
	n.data(remote2, "/a/3")
	n.want("D300 /a/1", "D300 /a/3")
	n.idle()
}

func TestMulticast(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 10).route("/a", remote2, 20).route("/a", local1, 5)
	n.strategy("/a", "/localhost/nfd/strategy/multicast")
	n.interest(local1, "/a", 1)
	up := n.want("I401 /a", "I402 /a")
	if up[0].p.Interest.Nonce != 1 || up[1].p.Interest.Nonce != 1 {
		t.Fatal("the consumer's Nonce goes to all")
	}
	n.after(5 * ms)
	n.interest(local1, "/a", 2)
	n.want()
	n.after(5 * ms)
	n.interest(local1, "/a", 3)
	n.want("I401 /a", "I402 /a")
	n.route("/a", remote3, 1) // new next hops get what is pending
	n.want("I403 /a")
	n.data(remote2, "/a")
	n.want("D300 /a")
	n.interest(remote1, "/none", 1)
	n.want("N401 /none NoRoute")
	n.idle()
}

func TestMulticastNacks(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 10).route("/a", remote2, 20)
	n.strategy("/a", "/localhost/nfd/strategy/multicast/v=5")
	n.interest(local1, "/a", 1)
	up := n.want("I401 /a", "I402 /a")
	n.nackFor(up[1], ndn.NackDuplicate)
	n.want()
	n.nackFor(up[0], ndn.NackNoRoute)
	n.want("N300 /a Duplicate")
	n.strategy("/x", "/localhost/nfd/strategy/multicast")
	n.interest(local1, "/x", 1)
	n.want("N300 /x NoRoute")
	n.idle()
}

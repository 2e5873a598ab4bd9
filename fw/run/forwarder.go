package run

// Forwarder is a running forwarder.
type Forwarder struct{}

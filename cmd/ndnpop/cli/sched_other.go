//go:build !linux

package cli

// schedBatch is a policy that only Linux has.
func schedBatch() {}

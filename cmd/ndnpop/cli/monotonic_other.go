//go:build !linux

package cli

// monotonic is for service managers that only Linux has.
func monotonic() int64 { return 0 }

//go:build !linux

package sim

// hugePages has an effect on Linux only.
func hugePages(int) {}

//go:build !amd64

package pairsum

import "crypto/sha256"

func both(_, _ []byte) (x, y [sha256.Size]byte, ok bool) { return x, y, false }

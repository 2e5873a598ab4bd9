//go:build !linux

package multicast_test

import "testing"

const dummy = ""

func namespace(t *testing.T) { t.Skip("needs a network namespace") }

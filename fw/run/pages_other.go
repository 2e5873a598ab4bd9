//go:build !linux

package run

import "ndnpop/table"

// newPages leaves the content store in the Go heap.
func newPages() table.PageSource { return nil }

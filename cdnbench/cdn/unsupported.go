//go:build !linux

package cdn

import (
	"context"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/emunet"
)

func runTTFB(context.Context, cdnbench.Options) (*cdnbench.Result, error) {
	return nil, emunet.Supported()
}

func runFailover(context.Context, cdnbench.Options) (*cdnbench.Result, error) {
	return nil, emunet.Supported()
}

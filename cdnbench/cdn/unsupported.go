//go:build !linux

package cdn

import (
	"context"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/emunet"
)

// nowhere is what there is of the experiments here.
func nowhere(context.Context, cdnbench.Options) (*cdnbench.Result, error) {
	return nil, emunet.Supported()
}

var runGoodput, runLoss, runTTFB, runCacheUse, runPartial, runFailover, runPathSwitch = nowhere, nowhere, nowhere, nowhere, nowhere, nowhere, nowhere

// Kind has no arms here.
type Kind struct{}

func none(cdnbench.Options) []Kind { return nil }

var goodputKinds, lossKinds, ttfbKinds, cacheUseKinds, partialKinds, failoverKinds, pathSwitchKinds = none, none, none, none, none, none, none

func prepare(context.Context, cdnbench.Options, []Kind) error { return emunet.Supported() }

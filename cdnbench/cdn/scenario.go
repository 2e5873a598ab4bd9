package cdn

import (
	"context"

	"ndnpop/cdnbench"
)

// experiment is one of S3's.
type experiment struct {
	name, about string
	run         func(context.Context, cdnbench.Options) (*cdnbench.Result, error)
	kinds       func(cdnbench.Options) []Kind // the arms
}

// Name implements cdnbench.Scenario.
func (e experiment) Name() string { return e.name }

// About implements cdnbench.Scenario.
func (e experiment) About() string { return e.about }

// Run implements cdnbench.Scenario.
func (e experiment) Run(ctx context.Context, o cdnbench.Options) (*cdnbench.Result, error) {
	return e.run(ctx, o)
}

// Prepare implements cdnbench.Preparer.
func (e experiment) Prepare(ctx context.Context, o cdnbench.Options) error {
	return prepare(ctx, o, e.kinds(o))
}

// Scenarios are the experiments, which the group cdn runs. They need Linux and
// root.
func Scenarios() []cdnbench.Scenario {
	return []cdnbench.Scenario{
		experiment{"cdn-goodput", "how long objects of 1 to 100 MB take where nothing is lost", runGoodput, goodputKinds},
		experiment{"cdn-loss", "how long they take where links lose packets", runLoss, lossKinds},
		experiment{"cdn-ttfb", "how long the first byte takes, cold and cached", runTTFB, ttfbKinds},
		experiment{"cdn-cache-use", "what caches hold when the path changes in the middle of an object", runCacheUse, cacheUseKinds},
		experiment{"cdn-partial", "what ranges of a partly cached object cost", runPartial, partialKinds},
		experiment{"cdn-failover", "what a consumer notices when the intermediate that serves is killed or falls silent", runFailover, failoverKinds},
		experiment{"cdn-path-switch", "how long objects take when the path in use becomes worse", runPathSwitch, pathSwitchKinds},
	}
}

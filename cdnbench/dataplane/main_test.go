package dataplane

import (
	"os"
	"testing"

	"ndnpop/internal/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.Main(m)) }

package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ndnpop/mgmt"
)

// completion offers what the arguments of a command may be, by position, in
// shell completion; further ones are nothing.
func completion(args ...cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, given []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) >= len(args) || args[len(given)] == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return args[len(given)](c, given, prefix)
	}
}

// completionTime is how long the forwarder may take to tell what there is:
// somebody waits at a prompt.
const completionTime = time.Second

// asked offers what the forwarder knows, if it can be reached and answers soon.
func (f *ctlFlags) asked(list func(s *session) ([]cobra.Completion, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
		answer := make(chan []cobra.Completion, 1)
		// Connecting may take longer, and then ends with the program.
		go func() {
			var all []cobra.Completion
			_ = f.with(c, func(s *session) (err error) {
				ctx, cancel := context.WithTimeout(s.ctx, completionTime)
				defer cancel()
				s.ctx = ctx
				all, err = list(s)
				return err
			})
			answer <- all
		}()
		var all []cobra.Completion
		select {
		case all = <-answer:
		case <-time.After(completionTime):
		}
		for _, o := range all {
			if strings.HasPrefix(o, prefix) && !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFaces offers the faces by number, and by URI to whoever begins one.
func (f *ctlFlags) completeFaces(c *cobra.Command, given []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	_, err := strconv.ParseUint(prefix, 10, 64)
	byURI := prefix != "" && err != nil
	return f.asked(func(s *session) (out []cobra.Completion, err error) {
		list, err := readDataset(s, "faces", "list", nil, mgmt.ParseFaceStatuses)
		for i := range list {
			switch id := list[i].FaceID; {
			case id < firstFace:
			case byURI:
				out = append(out, line(list[i].URI))
			default:
				out = append(out, cobra.CompletionWithDesc(strconv.FormatUint(id, 10), line(list[i].URI)))
			}
		}
		return out, err
	})(c, given, prefix)
}

// firstFace is the lowest number of a face to somebody else (NFD: FACEID_RESERVED_MAX).
const firstFace = 256

// completeRoutes offers the prefixes that have routes.
func (f *ctlFlags) completeRoutes() cobra.CompletionFunc {
	return f.asked(func(s *session) (out []cobra.Completion, err error) {
		list, err := readDataset(s, "rib", "list", nil, mgmt.ParseRibEntries)
		for i := range list {
			out = append(out, list[i].Name.String())
		}
		return out, err
	})
}

// completeChoices offers the prefixes that have a strategy of their own.
func (f *ctlFlags) completeChoices() cobra.CompletionFunc {
	return f.asked(func(s *session) (out []cobra.Completion, err error) {
		list, err := readDataset(s, "strategy-choice", "list", nil, mgmt.ParseStrategyChoices)
		for i := range list {
			if len(list[i].Name) > 0 {
				out = append(out, list[i].Name.String())
			}
		}
		return out, err
	})
}

// completeStrategies offers the strategies that this program has.
func (f *ctlFlags) completeStrategies(*cobra.Command, []string, string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	for _, s := range f.e.strategies.Factories() {
		if !slices.Contains(out, s.Name) {
			out = append(out, s.Name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// line makes text of a peer's fit for one line of a completion.
func line(s string) string { return strings.ReplaceAll(safe(s), "\t", " ") }

package scaffold_test

import (
	"context"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// hanging is a manifest with functions that never answer.
type hanging struct{}

func (hanging) Names(ctx context.Context, _ model.Facts, _ map[string]any) (map[string]any, resource.Secrets) {
	return map[string]any{"Data": map[string]any{}, "Environ": map[string]any{}, "kvGet": func(_, _ string) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}, resource.Secrets{}
}

func (hanging) Tree(ctx context.Context, _ string) (string, func() error, error) {
	<-ctx.Done()
	return "", nil, ctx.Err()
}

// The timeout also limits functions and fetching.
func TestTimeoutOfWhatIsElsewhere(t *testing.T) {
	for source, want := range map[string]string{
		"src":                          "f: the templates took longer than 1s",
		"https://example.com/t.tar.gz": "could not fetch the source: it took longer than 1s",
	} {
		s := newSubject(t, put("src/f", `[[ try ]][[ kvGet("b", "k") ]][[ end ]]`), "source", source, "timeout", "1s")
		s.env.Scope.Origin = hanging{}
		if err := s.failsWith(); err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

package kvstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/musterfleet/muster/kvstore"
)

// TestOneCauseIsNamedOnce: what several families lack is one line, and one cause of all
// is there once.
func TestOneCauseIsNamedOnce(t *testing.T) {
	t.Parallel()
	old := kvstore.Unusable{Err: errors.New("too old")}
	a, b := errors.New("family a"), errors.New("family b")
	for want, errs := range map[string][]error{
		"too old":            {fmt.Errorf("list a: %w", old), fmt.Errorf("list b: %w", old)},
		"family a; family b": {b, a, b},
		"family a; too old":  {fmt.Errorf("list b: %w", old), a},
	} {
		got := kvstore.JoinDenials(errs)
		if got.Error() != want {
			t.Errorf("%q, want %q", got, want)
		}
		for _, err := range errs {
			if cause := (kvstore.Unusable{}); !errors.Is(got, err) && !(errors.As(err, &cause) && errors.Is(got, cause)) {
				t.Errorf("%q lacks %q", got, err)
			}
		}
	}
}

package archive

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckTarget(t *testing.T) {
	long := strings.Repeat("x/", 2048)
	for _, c := range []struct {
		name, target, want string
		leadsOut           bool
	}{
		{"a/b", "c", "", false},
		{"a/b", "../c", "", false},
		{"a/b", long[:4095], "", false},
		{"a", "", "unsafe entry: the link has no target", false},
		{"a", long, `unsafe entry: the link to "` + long[:80] + `"… has a target of 4096 bytes, which is longer than a path can be`, false},
		{"a", "/" + long, `unsafe entry: the link to "/` + long[:79] + `"… has a target of 4097 bytes, which is longer than a path can be`, false},
		{"a", "b\x00c", `unsafe entry: the target of the link, "b\x00c", contains a NUL byte`, false},
		{"a", "/etc", `unsafe entry: the link to "/etc" leads out of the target`, true},
		{"a/b", "../../c", `unsafe entry: the link to "../../c" leads out of the target`, true},
		{"a/b", "c/../../d", `unsafe entry: the link to "c/../../d" leads out of the target`, true},
	} {
		err, got := checkLinkTarget(c.name, c.target), ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want || err != nil && (!errors.Is(err, ErrUnsafeEntry) || errors.Is(err, ErrLeadsOut) != c.leadsOut) {
			t.Errorf("%s to %.80q: %v", c.name, c.target, err)
		}
	}
}

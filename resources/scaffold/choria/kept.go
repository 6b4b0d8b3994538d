package choria

import (
	"sync"

	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
)

// kept are what looks of one run have rendered and is to be stored: rendering
// it once more would take another process. A look that is old is renewed before
// anything is stored, and puts what it renders in the place of this.
type kept struct {
	mu    sync.Mutex
	run   string
	bytes int
	by    map[*scaffold.Spec]*rendering
}

// keep keeps what was rendered, as far as there is not too much of it.
func (k *kept) keep(env resource.Env, spec *scaffold.Spec, r *rendering) {
	if k == nil || env.RunID == "" || env.Scope.Unchanging() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.run != env.RunID {
		k.run, k.bytes, k.by = env.RunID, 0, map[*scaffold.Spec]*rendering{}
	}
	k.drop(spec)
	if size := r.size(); k.bytes+size <= maxKept {
		k.by[spec], k.bytes = r, k.bytes+size
	}
}

// take gives what the last look has rendered, once; nil where that is not there.
func (k *kept) take(env resource.Env, spec *scaffold.Spec) *rendering {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.run != env.RunID {
		return nil
	}

	return k.drop(spec)
}

func (k *kept) drop(spec *scaffold.Spec) *rendering {
	r := k.by[spec]
	delete(k.by, spec)
	k.bytes -= r.size()

	return r
}

func (r *rendering) size() int {
	size := 0
	if r != nil {
		for _, f := range r.files {
			size += len(f.content)
		}
	}

	return size
}

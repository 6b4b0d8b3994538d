package actions

// maxRunning is how many actions go on at the same time.
const maxRunning = 4

// slots bound how many actions go on at the same time.
type slots struct{ taken chan struct{} }

func newSlots() *slots { return &slots{make(chan struct{}, maxRunning)} }

// take takes a slot. The error wraps ErrBusy where none is free.
func (s *slots) take() error {
	select {
	case s.taken <- struct{}{}:
		return nil
	default:
		return ErrBusy
	}
}

// free gives a slot back.
func (s *slots) free() { <-s.taken }

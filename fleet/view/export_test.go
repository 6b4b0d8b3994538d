package view

import "time"

// Forget makes the next overview a new one.
func (f *Fleet) Forget() { f.overview.made = time.Time{} }

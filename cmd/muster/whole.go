package main

import (
	"fmt"
	"strconv"

	"github.com/choria-io/fisk"
)

// whole is a flag of a whole number: that of fisk takes 1.9 for 1.
type whole struct{ target *int }

// Set reads it.
func (w whole) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", text)
	}
	*w.target = n

	return nil
}

// String gives the number.
func (w whole) String() string { return strconv.Itoa(*w.target) }

// wholeNumber makes a flag one of a whole number.
func wholeNumber(flag *fisk.FlagClause, target *int) { flag.SetValue(whole{target}) }

package fleetcli

import (
	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
)

// Order are the flags of lists that are sorted and cut.
type Order struct {
	Sort    string
	Reverse bool
	// Limit is the most rows, 0 for all.
	Limit int
}

// AddOrder adds the flags.
func (o *Order) AddOrder(cmd *fisk.CmdClause) {
	cmd.Flag("sort", "Sort by this column").PlaceHolder("NAME").StringVar(&o.Sort)
	o.AddLimit(cmd)
}

// AddLimit adds the flags of what has an order of its own.
func (o *Order) AddLimit(cmd *fisk.CmdClause) {
	cmd.Flag("reverse", "Show the last first").UnNegatableBoolVar(&o.Reverse)
	cmd.Flag("limit", "Show so many at most; 0 for all").Default("0").PlaceHolder("N").IntVar(&o.Limit)
}

// Check checks the flags.
func (o *Order) Check() error {
	if o.Limit < 0 {
		return cli.Usagef("--limit %d: write how many are shown at most, or 0 for all", o.Limit)
	}

	return nil
}

// Remark says how many are not shown.
func (o *Order) Remark(p print.Printer, shown, all int) {
	if shown < all {
		p.Remark("%d of %d shown (--limit)", shown, all)
	}
}

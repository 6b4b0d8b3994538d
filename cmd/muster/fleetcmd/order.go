package fleetcmd

import (
	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/view"
)

// Order are the flags of lists that are sorted and cut.
type Order struct {
	Sort    string
	Reverse bool
	// Limit is the most rows, 0 for all.
	Limit int
}

// AddOrder adds the flags. Shells complete the names of columns.
func (o *Order) AddOrder(cmd *fisk.CmdClause, columns ...string) {
	cmd.Flag("sort", "Sort by this column").PlaceHolder("NAME").HintOptions(columns...).StringVar(&o.Sort)
	cmd.Flag("reverse", "Show the last first").UnNegatableBoolVar(&o.Reverse)
	cmd.Flag("limit", "Show at most N, the first in the order of the output; 0 for all").Default("0").PlaceHolder("N").IntVar(&o.Limit)
}

// Check checks the flags; columns are those by which there may be sorted, none for any.
func (o *Order) Check(columns ...string) error {
	if o.Limit < 0 {
		return cli.Usagef("--limit %d: write how many are shown at most, or 0 for all", o.Limit)
	}
	if o.Sort == "" || len(columns) == 0 {
		return nil
	}
	if err := (view.QueryTable{Columns: columns}).CheckColumns([]string{o.Sort}); err != nil {
		return cli.Usagef("--sort: %w", err)
	}

	return nil
}

// Of returns the order.
func (o *Order) Of() view.RowOrder {
	return view.RowOrder{Sort: o.Sort, Reverse: o.Reverse, Limit: o.Limit}
}

// Remark says how many are not shown.
func (o *Order) Remark(p print.Printer, shown, all int) {
	if shown < all {
		p.Remark("%d of %d shown (--limit)", shown, all)
	}
}

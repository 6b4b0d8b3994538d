package fleetcmd

import (
	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/view"
)

// Order holds the flags that sort and limit a list.
type Order struct {
	Sort    string
	Reverse bool
	// Limit is the maximum number of rows, 0 for all.
	Limit int
}

// AddOrder adds the flags. Shells complete the column names.
func (o *Order) AddOrder(cmd *fisk.CmdClause, columns ...string) {
	cmd.Flag("sort", "Sort by this column").PlaceHolder("NAME").HintOptions(columns...).StringVar(&o.Sort)
	cmd.Flag("reverse", "Reverse the order").UnNegatableBoolVar(&o.Reverse)
	cmd.Flag("limit", "Show the first N rows; 0 shows all").Default("0").PlaceHolder("N").IntVar(&o.Limit)
}

// Check validates the flags. Without columns any sort column is accepted.
func (o *Order) Check(columns ...string) error {
	if o.Limit < 0 {
		return cli.Usagef("--limit %d must be 0 (all) or more", o.Limit)
	}
	if o.Sort == "" || len(columns) == 0 {
		return nil
	}
	if err := (view.QueryTable{Columns: columns}).CheckColumns([]string{o.Sort}); err != nil {
		return cli.Usagef("--sort: %w", err)
	}

	return nil
}

// Of returns the flags as a query.Order.
func (o *Order) Of() view.RowOrder {
	return view.RowOrder{Sort: o.Sort, Reverse: o.Reverse, Limit: o.Limit}
}

// Remark prints how many rows the limit hides.
func (o *Order) Remark(p print.Printer, shown, all int) {
	if shown < all {
		p.Remark("%d of %d shown (--limit)", shown, all)
	}
}

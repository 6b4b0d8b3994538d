// Package manifest resolves a document into resources. It parses YAML or JSON, merges hierarchical
// data, evaluates expressions, decodes properties strictly and validates them. It reports all
// problems of a document at once, each with file, line, column and remedy, and changes nothing on
// the machine. Values that are known only during a run (outputs of other resources, files that a
// resource of the same manifest creates) are resolved by resource.Resource.ResolveDeferred.
//
// The package decides these points, which the formats leave open:
//
//   - A number that is not in its shortest form (0644, 1.10) is text to expressions, so it keeps
//     its form.
//   - Values of data can use Facts and Environ. Entries of hierarchy.order can also use Data: the
//     base data with the external data merged in.
//   - With merge first, the first match replaces the top-level keys that it sets. With deep, all
//     matches are merged in order: mappings are merged, lists are appended, and the last value wins.
//     External data are merged over both in the same way.
//   - The value of an expression is secret if the expression uses a secret, a mapping or list that
//     contains one, or all data. The values of a literal mapping are judged one by one.
//   - The result of a template is secret if its source uses a secret, or cannot be judged.
//   - The expressions of an excluded resource may fail, because the failure is often the reason for
//     the exclusion.
//   - A document over 16 MiB is rejected before parsing. Parsing stops at the first syntax error or
//     limit: a million values, 100 levels, or aliases that expand to more than 200,000 values.
package manifest

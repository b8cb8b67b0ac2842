// Package migrate has stored objects rewritten in the version that their kind is
// stored in, by the API server's own StorageVersionMigration: penstock migrate.
// In the order of the work, the files are:
//
//   - migrate.go: a migration of one kind, from wherever an earlier run left it
//     to its end;
//   - managers.go: who still writes objects in another version.
package migrate

// Package tool runs programs of others that measure, and keeps them from outliving
// the one that asked.
package tool

package controller

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	inventoryObjects = prometheus.NewDesc("penstock_inventory_objects",
		"Objects held for rules to read, by the group, version and kind that policies name.", []string{"group", "version", "kind"}, nil)
	inventorySynced = prometheus.NewDesc("penstock_inventory_synced",
		"1 if all objects of a kind are there for rules to read, 0 if their policies answer by their failure policy.", []string{"group", "version", "kind"}, nil)
)

// Describe is of prometheus.Collector.
func (*Inventory) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- inventoryObjects
	descriptions <- inventorySynced
}

// Collect is of prometheus.Collector. A kind that no policy names any more has
// no series.
func (i *Inventory) Collect(collected chan<- prometheus.Metric) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for kind, w := range i.watches {
		synced := 0.
		if w.state.synced {
			synced = 1
		}
		labels := []string{kind.Group, kind.Version, kind.Kind}
		collected <- prometheus.MustNewConstMetric(inventorySynced, prometheus.GaugeValue, synced, labels...)
		collected <- prometheus.MustNewConstMetric(inventoryObjects, prometheus.GaugeValue, float64(i.engine.Inventory().Count(kind)), labels...)
	}
}

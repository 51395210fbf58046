"""The Spark engine: passes over rows run on a cluster, the search on the driver. Imported only when it is asked for."""

import { data } from "./app.js";
import { axisOfNames, draw } from "./charts.js";

const sizes = data("sizes-data");
if (sizes) {
  const values = ["before", "after"].flatMap((when) =>
    sizes[when].sizes.map((s, order) => ({ when, order, size: s.size, share: s.people / sizes[when].people, people: s.people })),
  );
  const element = document.getElementById("sizes");
  draw(element, (colour) => ({
    height: 190,
    data: { values },
    mark: { type: "bar", cornerRadiusEnd: 2, tooltip: true },
    encoding: {
      x: { field: "size", type: "ordinal", sort: { field: "order" }, title: "people in the class", axis: axisOfNames(element, values.map((v) => v.size)) },
      xOffset: { field: "when", sort: ["before", "after"] },
      y: { field: "share", type: "quantitative", title: "share of people", axis: { format: "%" } },
      color: { field: "when", sort: ["before", "after"], title: null, scale: { domain: ["before", "after"], range: [colour("before"), colour("after")] }, legend: { orient: "top" } },
      tooltip: [{ field: "when" }, { field: "size", title: "class size" }, { field: "people", format: "," }, { field: "share", format: ".1%" }],
    },
  }));
}

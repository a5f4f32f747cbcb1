declare module "graphology-layout-forceatlas2/iterate.js" {
  /** Move nodes by one round of forces. */
  export default function iterate(
    settings: Readonly<Record<string, number | boolean>>,
    nodes: Float32Array,
    lines: Float32Array,
  ): void;
}

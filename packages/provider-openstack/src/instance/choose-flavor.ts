import type { Flavor } from './nova-server.ts';

/** What a flavor has to fulfil. */
export interface FlavorWish {
  /** MiB. */
  readonly minRam: number;
  /** A part of its name. */
  readonly nameFilter: string;
}

/** The flavor with the least memory that is enough, among those whose names fit: the rule of nodepool. */
export function chooseFlavor(
  flavors: readonly Flavor[],
  { minRam, nameFilter }: FlavorWish,
): Flavor | undefined {
  return flavors
    .toSorted((one, other) => one.ram - other.ram)
    .find(({ ram, name }) => ram >= minRam && name.includes(nameFilter));
}

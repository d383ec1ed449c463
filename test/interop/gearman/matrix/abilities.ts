/** Features that some peers lack. */
export type Ability =
  | 'GRAB_JOB_UNIQ'
  | 'GRAB_JOB_ALL'
  | 'low priority'
  | 'handle'
  | 'query'
  | 'query by key'
  | 'scheduled'
  | 'empty result'
  | 'status'
  | 'data'
  | 'warning'
  | 'exception'
  | 'end by exception'
  | 'requeue'
  | 'fail for the dead'
  | 'reducer';

/** A client, a server or a worker. */
export interface Peer {
  /** Missing features, with reasons. */
  readonly cannot: Partial<Record<Ability, string>>;
}

/** Returns whether all of them have the required features. */
export function areAble(peers: readonly Peer[], needs: readonly Ability[]): boolean {
  return needs.every((ability) => peers.every(({ cannot }) => cannot[ability] === undefined));
}

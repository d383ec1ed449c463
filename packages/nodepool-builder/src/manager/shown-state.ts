/** The state that people see: a build or an upload that was cancelled counts as failed for the manager only. */
export function shownState<S extends string>({
  state,
  cancelledBy,
}: {
  readonly state: S;
  readonly cancelledBy?: string | undefined;
}): S | 'cancelled' {
  return state === 'failed' && cancelledBy !== undefined ? 'cancelled' : state;
}

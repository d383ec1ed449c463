/** The reason with which an act is stopped whose subject will not come any more: it has failed then. */
export class Hopeless extends Error {
  override readonly name = 'Hopeless';
}

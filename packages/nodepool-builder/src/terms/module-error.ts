/** A module that cannot be used. The message has the reason and the remedy. */
export class ModuleError extends Error {
  override readonly name = 'ModuleError';
  /** Reason, such as `module "dib" has the type of another builder`. */
  readonly reason: string;
  readonly remedy: string;

  constructor(reason: string, remedy: string) {
    super(`${reason}; ${remedy}`);
    this.reason = reason;
    this.remedy = remedy;
  }
}

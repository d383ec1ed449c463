import { GoogleError } from './model.ts';

/** Error of an operation, as the API describes it. */
export interface OperationError {
  readonly code: string;
  readonly message: string;
  readonly errorDetails?: readonly object[];
  /** HTTP status. Default 400. */
  readonly status?: number;
}

/** Progress of an operation. */
interface Course {
  /** Number of descriptions that show it as running. Default 0. */
  readonly reads?: number;
  /** Called when the operation ends without an error. */
  readonly effect?: () => void;
  /** Error. Default: none. */
  readonly error?: OperationError | undefined;
}

interface OperationState {
  readonly name: string;
  readonly subject: object;
  readonly course: Course;
  reads: number;
}

/** Global operations in the double. */
export class Operations {
  readonly #byName = new Map<string, OperationState>();

  /** Starts an operation. @returns its description */
  start(subject: object, course: Course = {}): object {
    const { reads = 0 } = course;
    const operation = { name: `operation-${this.#byName.size + 1}`, subject, course, reads };
    this.#byName.set(operation.name, operation);
    if (reads === 0 && course.error === undefined) course.effect?.();
    return describe(operation);
  }

  /** @throws GoogleError */
  read(name: string): object {
    const operation = this.#byName.get(name);
    if (operation === undefined) throw new GoogleError(404, 'notFound', 'no such operation');
    const { effect, error } = operation.course;
    if (operation.reads > 0 && --operation.reads === 0 && error === undefined) effect?.();
    return describe(operation);
  }

  isChanging(subject: object): boolean {
    return [...this.#byName.values()].some((one) => one.subject === subject && one.reads > 0);
  }
}

function describe({ name, reads, course: { error } }: OperationState): object {
  if (reads > 0) return { name, status: 'RUNNING' };
  if (error === undefined) return { name, status: 'DONE' };
  const { status: httpErrorStatusCode = 400, ...failure } = error;
  return { name, status: 'DONE', error: { errors: [failure] }, httpErrorStatusCode };
}

/** A method of an SDK client. Its other overloads have callbacks. */
interface SdkMethod<Input, Output> {
  (input: Input, options?: object): Promise<Output>;
  (input: Input, callback: never): void;
  (input: Input, options: never, callback: never): void;
}

/** The requests of an SDK client, each with its input as the only argument. */
export type SdkRequests<Client> = {
  readonly [Name in keyof Client]: Client[Name] extends SdkMethod<infer Input, infer Output>
    ? (input: Input) => Promise<Output>
    : never;
};

/**
 * Wraps an SDK client, so that all its requests run in one way.
 *
 * @param run runs a request. `task` is the name of the operation, such as `RegisterImage`
 */
export function sdkRequests<Client extends object>(
  client: Client,
  run: (task: string, send: (options: object) => Promise<unknown>) => Promise<unknown>,
): SdkRequests<Client> {
  const methods = client as Readonly<Record<string, (input: unknown, options: object) => Promise<unknown>>>;
  const get = (_: object, name: string) => (input: unknown) =>
    run(name.charAt(0).toUpperCase() + name.slice(1), async (options) => methods[name]?.(input, options));
  return new Proxy(client, { get }) as unknown as SdkRequests<Client>;
}

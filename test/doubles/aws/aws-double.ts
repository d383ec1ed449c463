import * as ebs from '@aws-sdk/client-ebs';
import * as ec2 from '@aws-sdk/client-ec2';
import * as sts from '@aws-sdk/client-sts';
import { NormalizedSchema } from '@smithy/core/schema';
import type { StaticOperationSchema } from '@smithy/types';
import { LineMachine } from '../line-machine.ts';
import { LoopbackServer, LostResponse, type Reply, type Request } from '../loopback-server.ts';
import { IMAGE_OPERATIONS } from './images.ts';
import { IMPORT_OPERATIONS } from './imports.ts';
import { INSTANCE_OPERATIONS, INSTANCE_TYPES, terminate } from './instances.ts';
import { AwsError, operationName, readJson, readQuery, writeXml } from './model.ts';
import { type AwsDoubleOptions, GENERAL_OPERATIONS, Region } from './region.ts';
import { EBS_OPERATIONS, SNAPSHOT_OPERATIONS } from './snapshots.ts';

type Operation = (region: Region, input: never) => object | Promise<object>;

/** Operations of EC2 in the double, by name. */
const EC2_OPERATIONS: Readonly<Record<string, Operation>> = {
  ...GENERAL_OPERATIONS,
  ...IMAGE_OPERATIONS,
  ...IMPORT_OPERATIONS,
  ...INSTANCE_OPERATIONS,
  ...SNAPSHOT_OPERATIONS,
};

/** A request that the double has accepted or refused. */
export interface AwsRequest {
  readonly operation: string;
  readonly region: string;
  /** Id of the key that signed the request. */
  readonly accessKeyId: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/**
 * Overrides the double's response to a request. Undefined: the double responds. `lost`: the double carries out the
 * request, but its response does not arrive.
 */
export type AwsFault = (request: AwsRequest) => AwsError | 'lost' | undefined;

const DEFAULTS: AwsDoubleOptions = {
  account: '123456789012',
  lag: 0,
  pendingLists: 0,
  importTasks: 20,
  pageSize: 1000,
  objectSize: () => 1,
  instanceTypes: INSTANCE_TYPES,
  boot: LineMachine.boot,
};

/**
 * A server that behaves like EC2 and EBS direct. It rejects requests that do not match AWS's model in the SDK, and
 * keeps state as AWS does. Clients reach it with `endpoint` and any credentials.
 */
export class AwsDouble extends LoopbackServer {
  /** The requests, in the order of their arrival. */
  readonly requests: AwsRequest[] = [];
  /** Default: no faults. */
  fault: AwsFault = () => undefined;
  readonly #options: AwsDoubleOptions;
  readonly #regions = new Map<string, Region>();

  private constructor(options: Partial<AwsDoubleOptions>) {
    super();
    this.#options = { ...DEFAULTS, ...options };
  }

  static async start(options: Partial<AwsDoubleOptions> = {}, port = 0): Promise<AwsDouble> {
    return await new AwsDouble(options).listen(port);
  }

  region(name = 'us-east-1'): Region {
    const region =
      this.#regions.get(name) ??
      new Region(
        name,
        this.#options,
        (other) => this.region(other),
        () => this.port,
      );
    this.#regions.set(name, region);
    return region;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    const instances = [...this.#regions.values()].flatMap((region) => region.instances.all());
    await Promise.all(instances.map((instance) => terminate(instance)));
    await super[Symbol.asyncDispose]();
  }

  protected override async respond(request: Request): Promise<Reply> {
    const scope = /Credential=([^/]+)\/\d+\/([^/]+)\/([^/]+)\/aws4_request/.exec(
      request.headers.authorization ?? '',
    );
    const [, accessKeyId = '', regionName = '', service = ''] = scope ?? [];
    const answer = { ebs: respondEbs, sts: respondSts }[service] ?? respondEc2;
    return await answer(request, async (operation, input, run) => {
      if (scope === null) throw new AwsError('AuthFailure', 'The request is not signed', 401);
      const entry = { operation, region: regionName, accessKeyId, input };
      this.requests.push(entry);
      const fault = this.fault(entry);
      if (fault instanceof AwsError) throw fault;
      const output = await run(this.region(regionName));
      if (fault === 'lost') throw new LostResponse();
      return output;
    });
  }
}

function reply(
  type: string,
  status: number,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return { status, headers: { 'content-type': type, 'x-amzn-requestid': 'double', ...headers }, body };
}

type Run = (
  operation: string,
  input: Record<string, unknown>,
  work: (region: Region) => object | Promise<object>,
) => Promise<object>;

async function respondEc2({ body }: Request, run: Run): Promise<Reply> {
  const type = 'text/xml;charset=UTF-8';
  try {
    const form = new URLSearchParams(body.toString());
    const name = form.get('Action') ?? '';
    const schema = (ec2 as unknown as Record<string, StaticOperationSchema | undefined>)[`${name}$`];
    const operation = EC2_OPERATIONS[name];
    if (schema === undefined || operation === undefined) {
      throw new AwsError('InvalidAction', `The action ${name} is not valid for this web service.`);
    }
    if (form.get('Version') !== '2016-11-15') throw new AwsError('InvalidParameterValue', 'wrong version');
    const input = readQuery(NormalizedSchema.of(schema[4]), form);
    const output = await run(name, input, (region) => {
      if (input.DryRun === true) {
        const reason = 'Request would have succeeded, but DryRun flag is set.';
        throw new AwsError('DryRunOperation', reason, 412);
      }
      return operation(region, input as never);
    });
    const tag = `${name}Response`;
    const inner = writeXml(NormalizedSchema.of(schema[5]), output);
    const text = `<${tag} xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>double</requestId>${inner}</${tag}>`;
    return reply(type, 200, text);
  } catch (error) {
    if (!(error instanceof AwsError)) throw error;
    const inner = `<Code>${error.code}</Code><Message>${error.message.replaceAll('<', '&lt;')}</Message>`;
    const text = `<Response><Errors><Error>${inner}</Error></Errors><RequestID>double</RequestID></Response>`;
    return reply(type, error.status, text);
  }
}

/** The part of STS that reports whose credentials a request has. */
async function respondSts({ body }: Request, run: Run): Promise<Reply> {
  const type = 'text/xml';
  const name = 'GetCallerIdentity';
  try {
    const form = new URLSearchParams(body.toString());
    if (form.get('Action') !== name || form.get('Version') !== '2011-06-15') {
      throw new AwsError('InvalidAction', `Could not find operation ${form.get('Action')}`);
    }
    const input = readQuery(NormalizedSchema.of(sts.GetCallerIdentity$[4]), form);
    const output = await run(name, input, ({ options: { account } }) => ({
      UserId: 'AIDAEXAMPLE',
      Account: account,
      Arn: `arn:aws:iam::${account}:user/builder`,
    }));
    const inner = writeXml(NormalizedSchema.of(sts.GetCallerIdentity$[5]), output);
    const result = `<${name}Result>${inner}</${name}Result>`;
    const metadata = '<ResponseMetadata><RequestId>double</RequestId></ResponseMetadata>';
    const text = `<${name}Response>${result}${metadata}</${name}Response>`;
    return reply(type, 200, text);
  } catch (error) {
    if (!(error instanceof AwsError)) throw error;
    const inner = `<Type>Sender</Type><Code>${error.code}</Code><Message>${error.message}</Message>`;
    const text = `<ErrorResponse><Error>${inner}</Error><RequestId>double</RequestId></ErrorResponse>`;
    return reply(type, error.status, text);
  }
}

/** Method, path and status of each EBS direct operation, from the model. */
const EBS_ROUTES = Object.entries<Operation>(EBS_OPERATIONS).map(([name, operation]) => {
  const schema = (ebs as unknown as Record<string, StaticOperationSchema>)[
    `${name}$`
  ] as StaticOperationSchema;
  const [method, path, status] = (NormalizedSchema.of(schema).getMergedTraits().http ?? []) as [
    string,
    string,
    number,
  ];
  const pattern = new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);
  return { operation, schema, method, pattern, status };
});

async function respondEbs({ method, url, headers, body }: Request, run: Run): Promise<Reply> {
  const type = 'application/json';
  try {
    const route = EBS_ROUTES.find((one) => one.method === method && one.pattern.test(url.pathname));
    if (route === undefined) throw new AwsError('ValidationException', `no operation has ${url.pathname}`);
    const inputSchema = NormalizedSchema.of(route.schema[4]);
    const elsewhere: Record<string, string | Buffer> = { ...route.pattern.exec(url.pathname)?.groups };
    let isPayload = false;
    for (const [name, member] of inputSchema.structIterator()) {
      const { httpHeader, httpQuery, streaming, httpPayload } = member.getMergedTraits();
      const header = httpHeader && headers[httpHeader.toLowerCase()];
      if (typeof header === 'string') elsewhere[name] = header;
      const query = httpQuery && url.searchParams.get(httpQuery);
      if (typeof query === 'string') elsewhere[name] = query;
      if (streaming || httpPayload) {
        isPayload = true;
        elsewhere[name] = body;
      }
    }
    const json: unknown = isPayload || body.length === 0 ? {} : JSON.parse(body.toString());
    const input = readJson(inputSchema, json, elsewhere);
    const output = await run(operationName(route.schema), input, (region) =>
      route.operation(region, input as never),
    );
    return writeEbs(NormalizedSchema.of(route.schema[5]), output as Record<string, unknown>, route.status);
  } catch (error) {
    if (!(error instanceof AwsError)) throw error;
    const text = JSON.stringify({ __type: error.code, code: error.code, message: error.message });
    return reply(type, error.status, text);
  }
}

/** Sends members of the output as headers, as the body, or in JSON. */
function writeEbs(schema: NormalizedSchema, output: Record<string, unknown>, status: number): Reply {
  const json: Record<string, unknown> = {};
  const headers: Record<string, string> = {};
  let payload: Buffer | undefined;
  const members = new Map(schema.structIterator());
  for (const [name, value] of Object.entries(output)) {
    const { httpHeader, streaming, httpPayload } = members.get(name)?.getMergedTraits() ?? {};
    if (httpHeader) headers[httpHeader] = String(value);
    else if (streaming || httpPayload) payload = value as Buffer;
    else json[name] = value;
  }
  const type = payload === undefined ? 'application/json' : 'application/octet-stream';
  return reply(type, status, payload ?? JSON.stringify(json), headers);
}

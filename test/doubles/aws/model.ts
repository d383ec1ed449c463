import type { NormalizedSchema } from '@smithy/core/schema';
import type { StaticOperationSchema } from '@smithy/types';

/** An error as AWS reports it. */
export class AwsError extends Error {
  readonly code: string;
  readonly status: number;

  constructor(code: string, message: string, status = 400) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** Name of an operation's schema: `RegisterImage`. */
export function operationName(operation: StaticOperationSchema): string {
  return operation[2];
}

/** Number of required members, which a structure lists first. */
function requiredMembers(schema: NormalizedSchema): number {
  const structure: readonly unknown[] = schema.getSchema() as never;
  return typeof structure[6] === 'number' ? structure[6] : 0;
}

/** Parameters of a query, as a tree: `BlockDeviceMapping.1.Ebs.SnapshotId` has four levels. */
interface QueryNode {
  value?: string;
  readonly children: Map<string, QueryNode>;
}

/**
 * Reads the input of an operation from the form of EC2's query protocol.
 *
 * @throws AwsError for a parameter that the model does not contain, a missing one, or one of the wrong type
 */
export function readQuery(schema: NormalizedSchema, form: URLSearchParams): Record<string, unknown> {
  const root: QueryNode = { children: new Map() };
  for (const [key, value] of form) {
    if (key === 'Action' || key === 'Version') continue;
    let node = root;
    for (const name of key.split('.')) {
      const child = node.children.get(name) ?? { children: new Map() };
      node.children.set(name, child);
      node = child;
    }
    node.value = value;
  }
  return readNode(schema, root, '') as Record<string, unknown>;
}

function readNode(schema: NormalizedSchema, node: QueryNode, path: string): unknown {
  if (schema.isStructSchema()) return readStructure(schema, node, path);
  if (schema.isListSchema()) {
    const member = schema.getValueSchema();
    const positions = [...node.children.keys()].map(Number).toSorted((one, other) => one - other);
    if (positions.some((position, index) => position !== index + 1)) {
      throw new AwsError('InvalidParameterValue', `the members of ${path} are not numbered from 1`);
    }
    return positions.map((position) =>
      readNode(member, node.children.get(String(position)) ?? { children: new Map() }, `${path}.${position}`),
    );
  }
  if (node.value === undefined || node.children.size > 0) {
    throw new AwsError('InvalidParameterValue', `the parameter ${path} is not a single value`);
  }
  return readScalar(schema, node.value, path);
}

function readStructure(schema: NormalizedSchema, node: QueryNode, path: string): Record<string, unknown> {
  const members = new Map(
    [...schema.structIterator()].map(([name, member]) => {
      const { ec2QueryName, xmlName } = member.getMergedTraits();
      const key = [ec2QueryName, xmlName].find((one) => typeof one === 'string') ?? name;
      return [`${key.charAt(0).toUpperCase()}${key.slice(1)}`, { name, member }];
    }),
  );
  const result: Record<string, unknown> = {};
  for (const [key, child] of node.children) {
    const known = members.get(key);
    if (known === undefined) {
      throw new AwsError('UnknownParameter', `The parameter ${path}${path && '.'}${key} is not recognized`);
    }
    result[known.name] = readNode(known.member, child, `${path}${path && '.'}${key}`);
  }
  checkRequired(schema, result, path);
  return result;
}

function checkRequired(schema: NormalizedSchema, value: Record<string, unknown>, path: string): void {
  const required = [...schema.structIterator()].slice(0, requiredMembers(schema));
  for (const [name] of required) {
    if (value[name] !== undefined) continue;
    const parameter = `${path}${path && '.'}${name}`;
    throw new AwsError('MissingParameter', `The request must contain the parameter ${parameter}`);
  }
}

/** @throws AwsError for values of another type */
function readScalar(schema: NormalizedSchema, text: string, path: string): unknown {
  const wrong = (): AwsError => new AwsError('InvalidParameterValue', `Invalid value '${text}' for ${path}`);
  if (schema.isBooleanSchema()) {
    if (text !== 'true' && text !== 'false') throw wrong();
    return text === 'true';
  }
  if (schema.isNumericSchema()) {
    if (!/^-?\d+(?:\.\d+)?$/.test(text)) throw wrong();
    return Number(text);
  }
  if (schema.isTimestampSchema()) {
    const date = new Date(text);
    if (Number.isNaN(date.getTime())) throw wrong();
    return date;
  }
  if (schema.isBlobSchema()) return Buffer.from(text, 'base64');
  return text;
}

/** Checks a JSON body against a structure. `others` lists members that are sent elsewhere. */
export function readJson(
  schema: NormalizedSchema,
  body: unknown,
  others: Readonly<Record<string, string | Buffer>>,
): Record<string, unknown> {
  const object = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  const result: Record<string, unknown> = {};
  for (const [name, value] of [...Object.entries(object), ...Object.entries(others)]) {
    const member = [...schema.structIterator()].find(([known]) => known === name)?.[1];
    if (member === undefined) throw new AwsError('ValidationException', `unknown member ${name}`);
    result[name] =
      typeof value === 'string' && !member.isStringSchema() ? readScalar(member, value, name) : value;
    const isRight =
      Buffer.isBuffer(value) ||
      (member.isStringSchema() && typeof result[name] === 'string') ||
      (member.isNumericSchema() && typeof result[name] === 'number') ||
      (member.isBooleanSchema() && typeof result[name] === 'boolean') ||
      (member.isListSchema() && Array.isArray(result[name]));
    if (!isRight) throw new AwsError('ValidationException', `the member ${name} has a wrong type`);
  }
  checkRequired(schema, result, '');
  return result;
}

/**
 * Writes the output of an operation as EC2 does.
 *
 * @throws TypeError for a member that the model does not contain
 */
export function writeXml(schema: NormalizedSchema, value: unknown): string {
  if (value === undefined || value === null) return '';
  if (schema.isStructSchema()) {
    const members = new Map(schema.structIterator());
    return Object.entries(value as Record<string, unknown>)
      .filter(([, member]) => member !== undefined)
      .map(([name, member]) => {
        const inner = members.get(name);
        if (inner === undefined) throw new TypeError(`${schema.getName()} has no member ${name}`);
        const tag = inner.getMergedTraits().xmlName ?? name;
        return `<${tag}>${writeXml(inner, member)}</${tag}>`;
      })
      .join('');
  }
  if (schema.isListSchema()) {
    const member = schema.getValueSchema();
    const tag = member.getMergedTraits().xmlName ?? 'member';
    return (value as readonly unknown[]).map((item) => `<${tag}>${writeXml(member, item)}</${tag}>`).join('');
  }
  const text = value instanceof Date ? value.toISOString() : value;
  return `${text as string | number | boolean}`
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}

import { analyse } from 'scslre';

/**
 * Plugin for oxlint with one rule: no regular expression may take more than linear time on any text. Otherwise an
 * expression that reads a peer's bytes would let the peer stop the whole process with one long line.
 */
export default {
  meta: { name: 'super-linear-regexp' },
  rules: {
    'no-super-linear-time': {
      create: (context) => ({
        Literal(node) {
          if (node.regex) report(context, node, node.regex.pattern, node.regex.flags);
        },
        NewExpression(node) {
          if (node.callee.name !== 'RegExp') return;
          const [pattern, flags] = node.arguments;
          if (typeof pattern?.value === 'string') report(context, node, pattern.value, flags?.value ?? '');
        },
      }),
    },
  },
};

function report(context, node, source, flags) {
  const { reports } = analyse({ source, flags }, { reportTypes: { Move: isMovable(flags) } });
  for (const { type, character, exponential } of reports) {
    const time = exponential ? 'exponential' : 'quadratic or longer';
    const attack = `/${character.literal.source}/`;
    context.report({
      node,
      message: `takes ${time} time on a text with many ${attack} (${type}); anchor it, or use string methods`,
    });
  }
}

/** With the flag y, the engine tries the expression at only one position. */
function isMovable(flags) {
  return !flags.includes('y');
}

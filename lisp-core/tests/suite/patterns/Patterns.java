// What java.util.regex answers, for tests/suite/patterns.rs. README.md says how it is run.

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.regex.*;

public class Patterns {
    /** Texts of each pattern. */
    static final int TEXTS = 6;

    public static void main(String[] args) throws Exception {
        List<String> texts = lines(args[1]);
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        if (args[0].equals("generate")) {
            Set<String> seen = new HashSet<>();
            Random random = new Random(Long.parseLong(args[3]));
            while (seen.size() < Integer.parseInt(args[2])) {
                String pattern = new Generator(random).pattern();
                if (pattern.length() > 40 || !seen.add(pattern)) continue;
                String answer;
                try {
                    answer = answer(pattern, seen.size() - 1, texts);
                } catch (NullPointerException e) {
                    // Some empty sides of && are no error of the syntax.
                    answer = "!";
                }
                out.println(escaped(pattern) + "\t" + digest(answer));
            }
        } else if (args[0].equals("show")) {
            out.println(answer(unescaped(args[2]), Integer.parseInt(args[3]), texts));
        }
        out.flush();
    }

    static List<String> lines(String file) throws IOException {
        List<String> lines = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(file))) lines.add(unescaped(line));
        return lines;
    }

    /** What a pattern comes to on its texts. */
    static String answer(String pattern, int number, List<String> texts) {
        Pattern p;
        try {
            p = Pattern.compile(pattern);
        } catch (PatternSyntaxException e) {
            return "!";
        }
        StringBuilder out = new StringBuilder();
        for (int k = 0; k < TEXTS; k++) {
            String text = texts.get((number * 5 + k * (k + 7)) % texts.size());
            Matcher m = p.matcher(text);
            List<MatchResult> found = found(m, text);
            out.append("seq");
            for (MatchResult match : found) groups(match, out);
            out.append("\nall");
            m = p.matcher(text);
            if (m.matches()) groups(m, out);
            out.append("\nsplit");
            for (String part : split(p, text, found)) out.append(" ").append(quoted(part));
            out.append("\nreplace ").append(quoted(replace(p, text, found))).append("\n");
        }
        return out.toString();
    }

    /** All matches but those that begin or end between the halves of a pair: a place that texts of whole characters have not. */
    static List<MatchResult> found(Matcher m, String text) {
        List<MatchResult> found = new ArrayList<>();
        while (m.find()) if (!halves(text, m.start()) && !halves(text, m.end())) found.add(m.toMatchResult());
        return found;
    }

    static boolean halves(String text, int at) {
        return at > 0 && at < text.length() && Character.isSurrogatePair(text.charAt(at - 1), text.charAt(at));
    }

    static boolean hasPairs(String text) {
        return text.codePoints().anyMatch(c -> c > 0xffff);
    }

    static List<String> split(Pattern p, String text, List<MatchResult> found) {
        if (!hasPairs(text)) return List.of(p.split(text, -1));
        List<String> parts = new ArrayList<>();
        int from = 0;
        for (MatchResult m : found) {
            if (m.end() == 0) continue;
            parts.add(text.substring(from, m.start()));
            from = m.end();
        }
        parts.add(text.substring(from));
        return parts;
    }

    static String replace(Pattern p, String text, List<MatchResult> found) {
        if (!hasPairs(text)) return p.matcher(text).replaceAll("<$0>");
        StringBuilder out = new StringBuilder();
        int from = 0;
        for (MatchResult m : found) {
            out.append(text, from, m.start()).append("<").append(m.group()).append(">");
            from = m.end();
        }
        return out.append(text.substring(from)).toString();
    }

    static void groups(MatchResult m, StringBuilder out) {
        out.append(" [");
        for (int i = 0; i <= m.groupCount(); i++) out.append(i > 0 ? " " : "").append(quoted(m.group(i)));
        out.append("]");
    }

    static String quoted(String s) {
        return s == null ? "nil" : "'" + escaped(s) + "'";
    }

    /** All but the printable characters of ASCII as %hex; */
    static String escaped(String s) {
        StringBuilder out = new StringBuilder();
        s.codePoints().forEach(c -> {
            if (c < 32 || c > 126 || c == '%') out.append("%").append(Integer.toHexString(c)).append(";");
            else out.appendCodePoint(c);
        });
        return out.toString();
    }

    static String unescaped(String s) {
        return Pattern.compile("%([0-9a-f]+);").matcher(s)
            .replaceAll(m -> Matcher.quoteReplacement(Character.toString(Integer.parseInt(m.group(1), 16))));
    }

    /** 30 bits of FNV-1a, in the characters from 0 to v. */
    static String digest(String answer) {
        if (answer.equals("!")) return "!";
        long hash = 0xcbf29ce484222325L;
        for (byte b : answer.getBytes(StandardCharsets.UTF_8)) hash = (hash ^ (b & 0xff)) * 0x100000001b3L;
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < 6; i++) out.append("0123456789abcdefghijklmnopqrstuv".charAt((int) (hash >>> (59 - 5 * i)) & 31));
        return out.toString();
    }
}

/** Patterns by a grammar. */
class Generator {
    static final String[] CHARS = {"a", "a", "a", "b", "b", "c", "A", "B", "x", "1", "2", "_", "-", " ", "=", ",", "\u00e9", "\u00c9", "\u00df", "\u03c3",
        "\u017f", "\u212a", "\u0131", "i", "I", "k", "s", "\n", "\r", "\u0085", "\u2028", "\ud835\udc9c", "\ud83d\ude00", "\u0301", "}", "]", "&", "#"};
    static final String[] ESCAPES = {"\\d", "\\d", "\\D", "\\w", "\\w", "\\W", "\\s", "\\s", "\\S", "\\h", "\\H", "\\v", "\\V", "\\t", "\\n", "\\r", "\\f", "\\e",
        "\\a", "\\x61", "\\x{e9}", "\\x{1d49c}", "\\u0061", "\\u00e9", "\\ud835\\udc9c", "\\0141", "\\01", "\\cJ", "\\.", "\\\\", "\\-", "\\(", "\\]", "\\^",
        "\\_", "\\<", "\\ ", "\\p{L}", "\\p{Lu}", "\\pL", "\\P{L}", "\\p{IsGreek}", "\\p{Alpha}", "\\p{Lower}", "\\p{Upper}", "\\p{Punct}", "\\p{Alnum}",
        "\\p{Space}", "\\p{XDigit}", "\\p{IsAlphabetic}", "\\p{javaLowerCase}", "\\p{javaWhitespace}", "\\p{Nd}", "\\p{M}", "\\p{Cntrl}", "\\p{Blank}",
        "\\p{Graph}", "\\p{Print}", "\\p{ASCII}", "\\p{Digit}", "\\p{IsLatin}", "\\p{sc=Latin}", "\\p{gc=Lu}", "\\p{LC}", "\\p{LD}", "\\p{L1}", "\\p{all}",
        "\\p{IsUppercase}", "\\p{IsWhite_Space}", "\\p{IsPunctuation}", "\\P{Lower}", "\\p{javaUpperCase}", "\\p{javaLetterOrDigit}", "\\p{S}", "\\p{Zs}"};
    static final String[] PLACES = {"^", "^", "$", "$", "\\b", "\\b", "\\B", "\\A", "\\z", "\\Z", "\\G"};
    static final String[] FLAGS = {"i", "i", "i", "m", "m", "s", "d", "u", "iu", "iu", "x", "U", "iU", "im", "md", "sd", "-i", "i-m", "x-i", "ix"};

    final Random random;
    int groups;
    boolean comments;

    Generator(Random random) {
        this.random = random;
    }

    int below(int n) {
        return random.nextInt(n);
    }

    boolean chance(int percent) {
        return below(100) < percent;
    }

    String one(String[] of) {
        return of[below(of.length)];
    }

    String pattern() {
        String front = "";
        if (chance(30)) {
            String flags = one(FLAGS);
            comments = flags.indexOf('x') >= 0 && !flags.contains("-x");
            front = "(?" + flags + ")";
        }
        return front + alternatives(3);
    }

    String alternatives(int depth) {
        StringBuilder out = new StringBuilder(sequence(depth));
        while (chance(depth == 3 ? 15 : 30)) out.append("|").append(chance(15) ? "" : sequence(depth));
        return out.toString();
    }

    String sequence(int depth) {
        StringBuilder out = new StringBuilder();
        for (int i = 0, n = 1 + below(depth + 1); i < n; i++) {
            if (comments && chance(15)) out.append(chance(50) ? " " : "# x\n");
            String atom = atom(depth);
            // What only changes flags is not repeated.
            out.append(atom).append(!atom.matches("\\(\\?[a-zA-Z-]+\\)") && chance(35) ? count() : "");
        }
        return out.toString();
    }

    String count() {
        String[] counts = {"?", "?", "*", "*", "+", "+", "{2}", "{1,2}", "{0}", "{0,1}", "{1,}", "{,2}", "{2,1}", "{3"};
        String count = counts[below(chance(3) ? 14 : 11)];
        return count + (chance(20) ? "?" : "");
    }

    String atom(int depth) {
        int kind = below(100);
        if (kind < 34) return one(CHARS);
        if (kind < 50) return one(ESCAPES);
        if (kind < 55) return ".";
        if (kind < 62) return one(PLACES);
        if (kind < 64) return chance(60) ? "\\R" : "\\X";
        if (kind < 66) return "\\Q" + one(CHARS) + (chance(50) ? "*" : "") + "\\E";
        if (kind < 82 || depth == 0) return members(2);
        return group(depth - 1);
    }

    String group(int depth) {
        int kind = below(100);
        boolean before = comments;
        String open;
        if (kind < 50) open = "(";
        else if (kind < 75) open = "(?:";
        else if (kind < 85) open = "(?<n" + groups + ">";
        else {
            String flags = one(FLAGS);
            if (flags.indexOf('x') >= 0) comments = true;
            if (chance(40)) return "(?" + flags + ")";
            open = "(?" + flags + ":";
        }
        String inside = alternatives(depth);
        if (open.equals("(") || open.startsWith("(?<n")) groups++;
        comments = before;
        return open + inside + ")";
    }

    String members(int depth) {
        StringBuilder out = new StringBuilder("[").append(chance(25) ? "^" : "").append(chance(3) ? "]" : "");
        for (int i = 0, n = 1 + below(3); i < n; i++) {
            int kind = below(100);
            if (kind < 40) out.append(one(CHARS));
            else if (kind < 60) out.append(one(ESCAPES));
            else if (kind < 80) out.append(one(new String[] {"a-c", "b-x", "A-Z", "a-z", "0-9", "\u00e0-\u00ff", "!-~", "\\x61-\\x{7a}", "\ud835\udc9c-\ud83d\ude00", "a-", "\t-\\v"}));
            else if (kind < 90 && depth > 0) out.append(members(depth - 1));
            else if (kind < 97 && i > 0) out.append("&&").append(chance(60) && depth > 0 ? members(depth - 1) : one(CHARS));
            else out.append("-");
        }
        return out.append("]").toString();
    }
}

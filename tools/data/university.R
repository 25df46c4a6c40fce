# Writes university.csv and university_students.csv from the data set CEMSChoice
# of the R package psychotree (0.16-0 was used).
#
# Usage, from the top of the repository:
#   Rscript tools/data/university.R data

folder <- commandArgs(trailingOnly = TRUE)
if (length(folder) != 1L || !dir.exists(folder)) {
  stop("usage: Rscript tools/data/university.R FOLDER, where FOLDER exists")
}

suppressPackageStartupMessages(library("psychotools"))
utils::data("CEMSChoice", package = "psychotree")

# One column per pair, named "London:Paris", in the questionnaire's order.
answers <- as.matrix(CEMSChoice$preference)
pairs <- do.call(rbind, strsplit(colnames(answers), ":", fixed = TRUE))
stopifnot(all(answers %in% c(-1, 0, 1, NA)))

# load_university("1998") reverses one pair instead of reading a third file.
reversed <- answers
reversed[, "Barcelona:Stockholm"] <- -reversed[, "Barcelona:Stockholm"]
stopifnot(all.equal(reversed, as.matrix(CEMSChoice$preference1998)))

respondents <- nrow(answers)
comparisons <- data.frame(
  respondent = rep(seq_len(respondents), each = nrow(pairs)),
  item1 = rep(pairs[, 1], respondents),
  item2 = rep(pairs[, 2], respondents),
  outcome = as.integer(t(answers))
)
covariates <- c(
  "study", "english", "french", "spanish", "italian", "work", "gender", "intdegree"
)
students <- data.frame(respondent = seq_len(respondents), CEMSChoice[covariates])

write_table <- function(table, name) {
  # A binary connection keeps Unix line ends on every system.
  connection <- file(file.path(folder, name), open = "wb")
  on.exit(close(connection))
  write.csv(table, connection, row.names = FALSE, quote = FALSE, na = "", eol = "\n")
}
write_table(comparisons, "university.csv")
write_table(students, "university_students.csv")
